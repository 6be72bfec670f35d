"""Roles: who plays, who learns, who measures. A role has `step()`; a runtime decides who calls it."""
