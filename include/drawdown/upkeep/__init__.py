"""Upkeep: bounds what runs leave behind and removes only what is no longer needed. Needs no Spark."""

from drawdown.upkeep.all_pipelines import tidy_all
from drawdown.upkeep.one_pipeline import Tidied

__all__ = ["Tidied", "tidy_all"]
