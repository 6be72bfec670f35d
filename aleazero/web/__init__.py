"""`alea web`: play, watch and analyse in the browser. Knows games, players and runs; nobody below knows it."""
