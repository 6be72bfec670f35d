"""How fast the parts are on this machine, ours and our peers', interleaved in one run."""
