"""The former place of `drawdown.application.log_lines`: jobs/ of older projects import it."""

from drawdown.application.log_lines import LogLines

__all__ = ["LogLines"]
