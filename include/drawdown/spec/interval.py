"""The former place of `drawdown.values.interval`: jobs/replay.py of older projects imports it."""

from drawdown.values.interval import Interval

__all__ = ["Interval"]
