"""Doors to other programs: protocols in which they ask our players for moves."""
