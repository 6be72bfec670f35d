"""Runtimes: who calls the roles' steps, in which process, on which machine."""
