"""Dashboards, alert rules and the programs that show them: what is looked at while a run trains."""
