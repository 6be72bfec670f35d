"""Balatro, unofficial: a seed-exact simulator of version 1.0.1o. Holds facts and rules; no art and no game text.

`facts` are the tables, `rng` is how a seed becomes numbers, `scoring` is what a hand is worth, `engine` plays.
Importing this package imports nothing: Numba is met where the rules are.
"""
