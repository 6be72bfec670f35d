"""Networks: torsos, heads, and how one is built from a config and a game's facts."""
