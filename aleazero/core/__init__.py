"""The vocabulary every other package speaks: game contract, records, keys, errors. Needs only jax and numpy."""
