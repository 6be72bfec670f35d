from __future__ import annotations

from aleazero.graph.model import LABELS, RELATIONS, Edge, between, joker_graph


def test_every_joker_has_a_moment_and_an_effect_and_every_end_is_a_node() -> None:
    graph = joker_graph()
    nodes = {(node.label, node.name) for node in graph.nodes}
    assert len(nodes) == len(graph.nodes)
    assert len(set(graph.edges)) == len(graph.edges)
    assert {node.label for node in graph.nodes} == set(LABELS)
    for edge in graph.edges:
        source, targets = RELATIONS[edge.kind]
        assert edge.source in nodes
        assert edge.target in nodes
        assert edge.source[0] == source
        assert edge.target[0] in targets
    for kind in ("ACTS", "GIVES"):
        assert {edge.source[1] for edge in graph.edges if edge.kind == kind} == set(graph.names("Joker"))


def test_tags_are_read_as_what_they_are_about() -> None:
    edges = set(joker_graph().edges)
    assert Edge("NEEDS", ("Joker", "Baron"), ("Rank", "King")) in edges
    assert Edge("NEEDS", ("Joker", "Fibonacci"), ("Rank", "Ace")) in edges
    assert Edge("NEEDS", ("Joker", "Scary Face"), ("Trait", "face")) in edges
    assert Edge("NEEDS", ("Joker", "Séance"), ("Hand", "Straight Flush")) in edges
    assert Edge("GIVES", ("Joker", "Runner"), ("Effect", "chips")) in edges
    assert Edge("GIVES", ("Joker", "Scholar"), ("Effect", "mult")) in edges
    # What a joker makes is fed, not needed.
    assert Edge("FEEDS", ("Joker", "Marble Joker"), ("Trait", "enh:Stone")) in edges
    assert Edge("FEEDS", ("Joker", "Pareidolia"), ("Trait", "face")) in edges
    assert Edge("FEEDS", ("Joker", "Four Fingers"), ("Hand", "Flush")) in edges
    assert {edge.kind for edge in edges if edge.source[1] == "Midas Mask" and edge.target[1] == "face"} == {"NEEDS"}


def test_why_two_jokers_work_together() -> None:
    assert between("Greedy Joker", "Rough Gem") == ("both need Diamonds",)
    assert between("Stone Joker", "Marble Joker") == ("Marble Joker makes enh:Stone, which Stone Joker needs",)
    assert between("Marble Joker", "Stone Joker") == ("Marble Joker makes enh:Stone, which Stone Joker needs",)
    assert not between("Joker", "Perkeo")
