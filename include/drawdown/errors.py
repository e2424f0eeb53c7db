"""Every error a user can meet: an id, what was found, where, and what to do next.

One class per kind; the kind decides the exit code and whether a retry can help. Errors are raised
where the cause is known; the CLI and the jobs print them without a stack trace.
"""

from __future__ import annotations

from typing import Any, ClassVar


class DrawdownError(Exception):
    """Base of all errors.

    Attributes:
        id: stable name, ``<area>.<what>`` (``spec.unknown-key``), for documents and searches.
        what: what was found, in one sentence.
        where: file and line, pipeline and source, or the address that was asked.
        do: the next step, a command where there is one.
    """

    exit_code: ClassVar[int] = 1
    transient: ClassVar[bool] = False

    def __init__(self, id: str, what: str, *, where: str = "", do: str = "") -> None:
        super().__init__(what)
        self.id = id
        self.what = what
        self.where = where
        self.do = do

    def __str__(self) -> str:
        lines = [f"{self.id}: {self.what}"]
        if self.where:
            lines.append(f"  where: {self.where}")
        if self.do:
            lines.append(f"  do:    {self.do}")
        return "\n".join(lines)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.id, self.what, self.where, self.do)

    def as_dict(self) -> dict[str, str]:
        """The four parts as text, as run records and ``--json`` show them."""
        return {"id": self.id, "what": self.what, "where": self.where, "do": self.do}


class SpecError(DrawdownError):
    """A file that the user wrote is invalid (exit code 2)."""

    exit_code = 2


class RefusedError(DrawdownError):
    """Continuing would break state or a sink, so nothing was changed (exit code 3)."""

    exit_code = 3


class BusyError(DrawdownError):
    """Another run holds the lease (exit code 4); a later try can succeed."""

    exit_code = 4
    transient = True


class SourceError(DrawdownError):
    """A source, broker or sink cannot be reached or read (exit code 5)."""

    exit_code = 5
    transient = True


class TransformError(DrawdownError):
    """The user's transform, or its query, failed (exit code 6)."""

    exit_code = 6


class AuditFailed(DrawdownError):
    """The slice was judged and did not pass; none of its rows was published (exit code 7)."""

    exit_code = 7


class MachineError(DrawdownError):
    """Something this machine needs is missing or broken (exit code 8)."""

    exit_code = 8


def _rebuild(kind: type[DrawdownError], id: str, what: str, where: str, do: str) -> DrawdownError:
    return kind(id, what, where=where, do=do)
