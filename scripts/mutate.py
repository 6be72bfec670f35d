"""Breaks the code in a scratch copy, one way at a time, and shows which test notices.

    python scripts/mutate.py              every fault, and by which tests it was caught
    python scripts/mutate.py --sample 5   the first of each kind (what CI runs)
    python scripts/mutate.py sign         those whose name contains "sign"

Every fault is one that some earlier system had: a wrong sign, a wrong player, a dropped chance probability, a stale
child, a lost terminal visit. A fault that no test notices fails the script, and so does one whose text is no longer
in the code: then the fault must be written anew.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent


class Fault(NamedTuple):
    """One way to be wrong, and the tests that must see it."""

    name: str
    file: str
    right: str
    wrong: str
    tests: tuple[str, ...]


BUILD, CHANCE, PUCT = "tests/search/test_build.py", "tests/search/test_chance.py", "tests/search/test_puct.py"
RECOUNT = f"{BUILD}::test_recount"

FAULTS = (
    Fault(
        "wrong sign where an evaluation enters",
        "aleazero/search/leaves.py",
        "row_signs=jnp.where(over, 0.0, seat_sign(evaluated.to_play))",
        "row_signs=jnp.where(over, 0.0, -seat_sign(evaluated.to_play))",
        (f"{RECOUNT}[puct-tictactoe]",),
    ),
    Fault(
        "dropped chance probability in the draw",
        "aleazero/search/chance.py",
        "upto = sums(jnp.maximum(probs, 0.0))",
        "upto = sums(jnp.ones_like(probs))",
        (f"{CHANCE}::test_every_visit_alone_follows_the_probabilities",),
    ),
    Fault(
        "lost terminal visit",
        "aleazero/search/build.py",
        "lines = jnp.where(fresh[..., None], own, jnp.where(leaves.there[..., None], leaves.line, jnp.uint32(0)))",
        "lines = own",
        (f"{PUCT}::test_win_in_one_keeps_its_visits", f"{RECOUNT}[puct-tictactoe]"),
    ),
    Fault(
        "stale child: a kept subtree without looking whose it is",
        "aleazero/search/reuse.py",
        "found &= (rows(tree.states, node) == fresh.states[0]).all(-1)",
        "found &= node >= 0",
        ("tests/search/test_reuse.py::test_another_position_keeps_nothing",),
    ),
    Fault(
        "wrong player: the players are taken to alternate",
        "aleazero/search/leaves.py",
        "seat_sign(evaluated.to_play)",
        "seat_sign(1 - states.to_play)",
        (f"{RECOUNT}[puct-pig]",),
    ),
    Fault(
        "wrong player: a node given to the other one",
        "aleazero/search/build.py",
        "turn = seat_sign(leaf.to_play)",
        "turn = seat_sign(1 - leaf.to_play)",
        (f"{RECOUNT}[gumbel-tictactoe]", f"{PUCT}::test_a_threat_is_stopped"),
    ),
    Fault(
        "wrong sign of a finished game",
        "aleazero/search/leaves.py",
        "evaluated.returns[:, 0] / game.spec.scale",
        "evaluated.returns[:, -1] / game.spec.scale",
        (f"{PUCT}::test_win_in_one_keeps_its_visits",),
    ),
    Fault(
        "wrong player where an edge is chosen",
        "aleazero/search/tree.py",
        "values=turn[..., None] * theirs[..., 1]",
        "values=theirs[..., 1]",
        ("tests/search/test_agreement.py::test_puct_visits_equal_mctx[tictactoe]",),
    ),
    Fault(
        "a search that forgets what was there before its root",
        "aleazero/search/leaves.py",
        "times.append(on_the_way.sum(0) + (tree.past == key[:, None]).all(-1).sum(-1))",
        "times.append(on_the_way.sum(0))",
        ("tests/search/test_recall.py::test_a_tree_ends_where_whole_play_ends[never]",),
    ),
    Fault(
        "dropped chance probability in the expectation",
        "aleazero/search/leaves.py",
        "expected = (plan.probs(leaves.state) * values).sum(-1)",
        "expected = values.sum(-1) / values.shape[-1] * 0.9",
        (f"{CHANCE}::test_exact_values_equal_expectimax",),
    ),
    Fault(
        "dropped chance probability above a chance node",
        "aleazero/search/chance.py",
        "value = jnp.where(at_chance, expected, value)",
        "value = jnp.where(at_chance, value, value)",
        (f"{CHANCE}::test_above_a_chance_node_the_expectation_is_passed_on",),
    ),
    Fault(
        "stale child: a new leaf hung on the wrong edge",
        "aleazero/search/tree.py",
        "index, mode = (row, edge), _TRUSTED",
        "index, mode = (row, jnp.maximum(edge - 1, 0)), _TRUSTED",
        (f"{RECOUNT}[puct-tictactoe]",),
    ),
    Fault(
        "lost terminal: finished games are not marked",
        "aleazero/search/build.py",
        "links = jnp.where(leaves.settled.reshape(lanes), -at, at)",
        "links = at",
        (f"{RECOUNT}[puct-tictactoe]",),
    ),
    Fault(
        "wrong side where a forced win is proved",
        "aleazero/search/proof.py",
        "least=known.least.at[node].set(jnp.where(mine, least, -most)),",
        "least=known.least.at[node].set(least),",
        ("tests/search/test_proof.py::test_bounds_hold_what_moves_are_worth",),
    ),
    Fault(
        "an ancestor left out of the backup",
        "aleazero/search/tree.py",
        "return stats + jnp.where(visited, brought, 0.0)",
        "return stats + jnp.where(visited, brought, 0.0).at[0].set(0.0)",
        (f"{RECOUNT}[gumbel-connect_four]",),
    ),
    Fault(
        "a search that sees the dice to come",
        "aleazero/search/build.py",
        'if game.spec.chance == "sampled":',
        'if game.spec.chance == "never":',
        (f"{CHANCE}::test_a_search_never_sees_the_dice_to_come",),
    ),
    Fault(
        "a budget that is compiled in",
        "aleazero/search/build.py",
        "budget = jnp.minimum(knobs.simulations, self.plan.config.max_simulations)",
        "budget = self.plan.config.max_simulations",
        (f"{BUILD}::test_budget_temperature_and_noise_do_not_recompile",),
    ),
    Fault(
        "Gumbel: the mixed value without the network's own",
        "aleazero/search/gumbel.py",
        "mixed = (node.raw[..., None] + visits",
        "mixed = (0.0 * node.raw[..., None] + visits",
        ("tests/search/test_agreement.py::test_gumbel_visits_equal_mctx[16-tictactoe]",),
    ),
    Fault(
        "PUCT: exploration that forgets the visits",
        "aleazero/search/puct.py",
        "jnp.sqrt(total) / (1.0 + node.visits)",
        "jnp.sqrt(total) / (2.0 + node.visits)",
        ("tests/search/test_agreement.py::test_puct_visits_equal_mctx[tictactoe]",),
    ),
    Fault(
        "targets: a stopped game labelled as a draw",
        "aleazero/learn/targets.py",
        "has_value = ready & ~(stopped & (td_lambda >= 1))",
        "has_value = ready",
        ("tests/learn/test_targets.py",),
    ),
    Fault(
        "targets: seat 0's view handed to the player to play",
        "aleazero/learn/targets.py",
        "    target = seen_by_seat(spec, target, span.to_play)\n",
        "",
        ("tests/learn/test_targets.py",),
    ),
    Fault(
        "replay: prioritised sampling that is uniform",
        "aleazero/replay/ring.py",
        "wanted = (jax.random.uniform(keys[0], (count,)) < config.surprise) & (weights.sum() > 0)",
        "wanted = jnp.zeros(count, bool)",
        ("tests/replay/test_ring.py",),
    ),
    Fault(
        "loss: illegal moves in the network's policy",
        "aleazero/learn/losses.py",
        "jnp.where(legal >= 0, _listed(logits, legal), -jnp.inf)",
        "_listed(logits, legal)",
        ("tests/learn/test_losses.py",),
    ),
    Fault(
        "match: the seats are not swapped",
        "aleazero/play/match.py",
        "seat = jnp.tile(jnp.arange(2), pairs)",
        "seat = jnp.tile(jnp.zeros(2, jnp.int32), pairs)",
        ("tests/play/test_match.py",),
    ),
    Fault(
        "backgammon: checkers borne off while others are outside",
        "aleazero/games/backgammon/board.py",
        "jnp.where((mine & ~jnp.uint32(HOME)) == 0, exact | beyond, jnp.uint32(0))",
        "exact | beyond",
        ("tests/games/backgammon/test_turns.py",),
    ),
    Fault(
        "backgammon: a checker on the bar does not count as back",
        "aleazero/games/backgammon/board.py",
        "jnp.uint32(HOME | THEIR_BAR)",
        "jnp.uint32(HOME)",
        ("tests/games/backgammon/test_game.py",),
    ),
    Fault(
        "backgammon: plays listed twice, in either order of the dice",
        "aleazero/games/backgammon/turns.py",
        "by_smaller = by_smaller & ~again & ~swapped",
        "by_smaller = by_smaller & ~swapped",
        ("tests/games/backgammon/test_turns.py",),
    ),
    Fault(
        "expectimax: a finished game valued by the network",
        "aleazero/search/expectimax.py",
        "opinion = jnp.where(over[:, None], certain(spec, points, opinion.shape[-1]), opinion)",
        "opinion = jnp.where(over[:, None], opinion, opinion)",
        ("tests/search/test_expectimax.py",),
    ),
    Fault(
        "luck: the other seat's, taken for the player's",
        "aleazero/play/luck.py",
        "np.tile([1.0, -1.0], len(result.points))",
        "np.tile([1.0, 1.0], len(result.points))",
        ("tests/play/test_luck.py",),
    ),
    Fault(
        "two descents in flight to the same move",
        "aleazero/search/gumbel.py",
        "scores = jnp.where(pending, -jnp.inf, root_score(root, gumbel, due, least))",
        "scores = root_score(root, gumbel, due, least)",
        ("tests/search/test_gumbel.py::test_two_leaves_in_flight_keep_to_the_budget",),
    ),
    Fault(
        "the second leaf in flight is not counted",
        "aleazero/search/build.py",
        "for k in range(self.plan.in_flight):",
        "for k in range(1):",
        (f"{BUILD}::test_recount_of_two_leaves_in_flight",),
    ),
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("words", nargs="*", help="only faults whose name contains one of these")
    parser.add_argument("--sample", type=int, help="only the first so many")
    options = parser.parse_args()
    chosen = [fault for fault in FAULTS if not options.words or any(word in fault.name for word in options.words)]
    chosen = chosen[: options.sample]
    missed = [fault.name for fault in chosen if not caught(fault)]
    print(f"{len(chosen) - len(missed)} of {len(chosen)} faults caught")
    for name in missed:
        print(f"NOT caught: {name}")
    return 1 if missed or not chosen else 0


def caught(fault: Fault) -> bool:
    """Whether every named test fails on the broken copy, and fails by its own assertions."""
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / "copy"
        ignored = shutil.ignore_patterns(".*", "__pycache__", "node_modules", "dist", "build", "docs")
        shutil.copytree(ROOT, copy, ignore=ignored)
        target = copy / fault.file
        text = target.read_text()
        if text.count(fault.right) != 1:
            print(f"{fault.name}: {fault.file} has {text.count(fault.right)} places that read {fault.right!r}")
            return False
        target.write_text(text.replace(fault.right, fault.wrong))
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *fault.tests]
        environment = os.environ | {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
        ran = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, check=False)
    failures = re.findall(r"^FAILED (\S+)", ran.stdout, re.MULTILINE)
    by = ", ".join(sorted(set(failures))) or f"nothing (exit code {ran.returncode})"
    print(f"{fault.name}: caught by {by}", flush=True)
    return ran.returncode == 1 and bool(failures)


if __name__ == "__main__":
    sys.exit(main())
