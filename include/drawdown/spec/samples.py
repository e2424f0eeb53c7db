"""`samples:` of project.yaml and pipeline.yaml: which columns of a row may leave the storage root.

Code that copies row values into a log, the metastore, Data Docs, Airflow or a terminal asks SampleGate.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from drawdown.values.model import Line

Samples = Literal["all", "none"] | Annotated[list[Line], Field(min_length=1)]


@dataclass(frozen=True)
class SampleGate:
    """Decides which columns of sample rows are shown; names are compared as Spark does, without case.

    Attributes:
        samples: the spec's list; None: the key columns and the judged columns.
        keys: the key columns of the sink.
    """

    samples: Samples | None = None
    keys: tuple[str, ...] = ()

    def shows(self, column: str, judged: Collection[str] = ()) -> bool:
        """Whether values of the column may be shown.

        Args:
            judged: the columns that the expectation, query or comparison is about.
        """
        match self.samples:
            case "all":
                return True
            case "none":
                return False
            case None:
                allowed: Collection[str] = (*self.keys, *judged)
            case listed:
                allowed = listed
        wanted = column.casefold()
        return any(wanted == name.casefold() for name in allowed)

    def shows_all(self, columns: Collection[str], judged: Collection[str] = ()) -> bool:
        """Whether values of all these columns may be shown; true for an empty list."""
        return all(self.shows(column, judged) for column in columns)

    def row(self, row: Mapping[str, Any], judged: Collection[str] = ()) -> dict[str, Any]:
        """Return the row without hidden values; empty if all are hidden."""
        return {name: value for name, value in row.items() if self.shows(name, judged)}
