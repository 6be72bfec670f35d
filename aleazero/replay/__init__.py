"""Replay: the ring that training rows are drawn from, and the log that makes it last."""
