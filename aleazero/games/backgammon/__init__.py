"""Backgammon: rules on bits, whole turns, what networks see, and how people write it."""
