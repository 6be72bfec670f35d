"""Exact answers for small games, in numpy on the host: what searches, networks and ratings are judged by.

Solvers know rules as arithmetic on plain arrays; they share no code with `aleazero.games`, so that one can test the
other. Values are for the player to play, in points.
"""
