"""The former place of `drawdown.plan.version_in_use`: jobs/rebuild.py of older projects imports it."""

from drawdown.plan.version_in_use import wanted

__all__ = ["wanted"]
