"""Quoridor, the worked example of docs/2-adding-a-game.md."""
