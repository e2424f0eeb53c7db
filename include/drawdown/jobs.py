"""What jobs/*.py of a project call: `from drawdown.jobs import drain; drain()`, and so replay and rebuild."""

from drawdown.launch.submitted_jobs import drain, rebuild, replay

__all__ = ["drain", "rebuild", "replay"]
