"""Experiments: variants of a run's settings times seeds, every one a run of its own, and what they show together."""
