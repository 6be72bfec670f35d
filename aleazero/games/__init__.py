"""Rules only: nothing here knows of search, networks or training."""
