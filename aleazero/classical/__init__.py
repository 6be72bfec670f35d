"""Chess as it was played before networks: alpha-beta over values of pieces on squares, learned from its own games.

It needs little arithmetic, so a CPU learns it from nothing in minutes; what it then plays teaches networks.
Compiled by Numba (extra `solvers`). Knows the rules of chess and nothing of networks, searches on devices or runs.
"""
