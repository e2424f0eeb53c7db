"""Upkeep: what runs leave behind stays bounded, and nothing that anybody needs goes. Needs no Spark."""

from drawdown.upkeep.everything import tidy_all
from drawdown.upkeep.tidy import Tidied

__all__ = ["Tidied", "tidy_all"]
