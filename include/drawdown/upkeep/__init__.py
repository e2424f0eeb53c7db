"""Upkeep: bounds what runs leave behind and removes only what is no longer needed. Needs no Spark."""

from drawdown.upkeep.everything import tidy_all
from drawdown.upkeep.tidy import Tidied

__all__ = ["Tidied", "tidy_all"]
