"""Processes of this machine: what a run has started, what it used, and the folders that only it may read."""
