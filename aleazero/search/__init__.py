"""Looking ahead: batch-native tree search over any game and any network."""
