"""The former place of `drawdown.spec.values.interval`: jobs/replay.py of older projects imports it."""

from drawdown.spec.values.interval import Interval

__all__ = ["Interval"]
