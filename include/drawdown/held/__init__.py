"""Slices that failed their audit: how long they may wait, and what a person decides."""
