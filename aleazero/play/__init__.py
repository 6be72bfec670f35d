"""Playing: rollouts of many games, episodes, matches and what they say of strength."""
