"""Runs on Ray: actors that play, one that learns, one that answers for a network; everything else is a local run's."""
