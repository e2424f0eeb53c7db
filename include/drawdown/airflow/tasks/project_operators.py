"""Operators that work on a project, or on one pipeline of it."""

from __future__ import annotations

from typing import Any

from airflow.sdk import BaseOperator


class ProjectOperator(BaseOperator):
    """A task of a project.

    Args:
        project_root: its folder.
    """

    def __init__(self, *, project_root: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.project_root = project_root


class PipelineOperator(ProjectOperator):
    """A task of one pipeline, by its name."""

    def __init__(self, *, pipeline: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pipeline = pipeline
