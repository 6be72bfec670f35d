"""AleaZero trains game-playing agents from nothing but the rules.

Importing the package does no work and loads no JAX; the parts are imported where they are used:
`aleazero.core` (the vocabulary), `aleazero.games` (rules), `aleazero.search` (looking ahead),
`aleazero.solvers` (exact answers), `aleazero.doctor` (the proof that they agree).
"""

__version__ = "0.1.0.dev0"
