"""Processes of this machine: what a run started and used, and the folders that only it may read."""
