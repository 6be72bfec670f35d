"""Balatro by Ray's RLlib: environments, a network in PyTorch and a learner of theirs, in a run like any other.

Imports Ray and PyTorch; nothing outside this package does.
"""
