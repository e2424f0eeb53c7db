"""`limits:` of project.yaml and of a source: how large and how deep what suppliers deliver may be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from drawdown.spec.clusters.cluster import Size, in_bytes
from drawdown.values.model import SpecModel, problem

if TYPE_CHECKING:
    from drawdown.spec.source import Source

# Which limits a format has: by which of them a file or a record of it can be beyond bounds.
_TEXT = ("record", "expansion")
_HAVE = {
    "csv": (*_TEXT, "columns"),
    "json": (*_TEXT, "nesting"),
    "xml": _TEXT,
    "text": _TEXT,
    "parquet": ("record", "nesting", "columns", "expansion"),
    "orc": ("record", "nesting", "columns"),
    "kafka": ("record", "nesting"),
}
Nesting = Annotated[int, Field(ge=1, le=1_000)]
Columns = Annotated[int, Field(ge=1, le=1_000_000)]
Expansion = Annotated[int, Field(ge=1, le=1_000_000)]


class Limits(SpecModel):
    """``record``: bytes of a line, of a file that is one record, of a footer, of a Kafka value. ``nesting``:
    levels of arrays, objects and elements. ``columns``: of a header or a footer. ``expansion``: how many
    times its own size a compressed file may become.
    """

    record: Size = "64m"
    nesting: Nesting = 200
    columns: Columns = 10_000
    expansion: Expansion = 200


class OwnLimits(SpecModel):
    """The same for one source; a key takes the place of the project's."""

    record: Size | None = None
    nesting: Nesting | None = None
    columns: Columns | None = None
    expansion: Expansion | None = None


@dataclass(frozen=True)
class SourceLimits:
    """The limits that hold for one source; `record` in bytes."""

    record: int
    nesting: int
    columns: int
    expansion: int

    @classmethod
    def of(cls, limits: Limits, own: OwnLimits | None = None) -> SourceLimits:
        """Return the project's limits with those of a source in their place."""
        given = limits.model_dump() | (own.model_dump(exclude_none=True) if own else {})
        record = given.pop("record")
        return cls(in_bytes(record), **given)


def check_limits(source: Source) -> None:
    """Raise a PydanticCustomError for a limit that no file or record of this format can exceed."""
    if source.limits is None:
        return
    if source.static:
        raise problem(
            "no-effect",
            "a static source is read whole, without a look at its files",
            "limits",
            do="remove the key",
        )
    have = _HAVE[source.format]
    for key in sorted(source.limits.model_fields_set):
        if key not in have or (source.format == "kafka" and key == "nesting" and source.value != "json"):
            raise problem(
                "no-effect",
                f"nothing at a {source.format} source is measured by it (its limits: {', '.join(have)})",
                "limits",
                key,
                do="remove the key",
            )
    if source.limits.nesting is not None and "maxNestingDepth" in source.options:
        raise problem(
            "contradiction", "maxNestingDepth says it, too", "limits", "nesting", do="keep one of them"
        )
