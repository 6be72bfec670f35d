"""Learning: targets from raw games, losses, and the update of the weights."""
