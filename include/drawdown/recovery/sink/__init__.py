"""Resets a generation's sink: finds what is ahead of the checkpoint and undoes it."""
