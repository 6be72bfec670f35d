"""What a run tells of itself: typed reports, the alarms read from them, and the sinks that render them."""
