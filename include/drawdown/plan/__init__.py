"""Finds out, before anything runs, what a run would refuse or warn about."""
