"""Files and bytes of an earlier state of the program, and tests that today's program still reads and writes them.

Data changes only by `python scripts/freeze.py NAME`, in a commit of its own that says why the format changes.
"""
