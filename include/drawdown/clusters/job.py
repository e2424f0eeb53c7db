"""The former place of `drawdown.launch.job`: jobs/ of older projects import it."""

from drawdown.launch.job import run_job

__all__ = ["run_job"]
