"""The command line: thin. It parses, calls and prints; what it calls lives elsewhere."""
