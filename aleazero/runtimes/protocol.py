"""The version of what travels between the machines of a run. Imports nothing: who cannot get in learns it at once."""

PROTOCOL = 1
