"""The joker graph: what Balatro's jokers give and need, as a graph that can be asked, and as numbers for networks."""
