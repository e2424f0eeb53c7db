"""A source and how far its rows are published: what a kind's `published` is called with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from drawdown.spec import Pipeline, Project, Source


@dataclass(frozen=True)
class PublishedSource:
    """A source and how far its rows are published.

    Attributes:
        offset: Spark's offset of the source after the last published batch.
    """

    project: Project
    pipeline: Pipeline
    name: str
    offset: Any

    @property
    def source(self) -> Source:
        return self.pipeline.sources[self.name]
