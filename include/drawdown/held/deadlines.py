"""The deadline of a held slice: runs warn in the second half of its term and fail after it.

Nothing is published or dropped at the deadline: only a person does that. The default term (``held:`` in
project.yaml) is a day shorter than the retention of Delta's VACUUM, because staged files are not in a table
yet.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from drawdown.errors import AuditFailed
from drawdown.metastore.records import HeldSlice
from drawdown.values.text import counted, utc
from drawdown.workspace import Workspace


@dataclass(frozen=True)
class Term:
    """A held slice and the end of its term, by the metastore's clock (UTC)."""

    held: HeldSlice
    since: datetime
    ends: datetime
    now: datetime

    @property
    def over(self) -> bool:
        return self.now >= self.ends

    @property
    def near(self) -> bool:
        """Whether more than half of the term is over."""
        return self.now - self.since > (self.ends - self.since) / 2

    @property
    def text(self) -> str:
        """One sentence."""
        ended = "ended" if self.over else "ends"
        has = "has" if len(self.held.batch_ids) == 1 else "have"
        return (
            f"{self.held} ({counted(self.held.rows, 'row')}) {has} been held since {utc(self.since)};"
            f" its term {ended} {utc(self.ends)}"
        )

    @property
    def do(self) -> str:
        pipeline = self.held.verdict.pipeline
        return f"`drawdown release {pipeline} --why ...` or `drawdown discard {pipeline} --why ...`"

    def notice(self) -> dict[str, str]:
        """Return the notice for the run record."""
        kind = "overdue" if self.over else "waits"
        return {"id": f"slice.{kind}", "what": self.text, "about": str(self.held), "do": self.do}


def terms(workspace: Workspace, pipeline: str) -> list[Term]:
    """Return the term of every held slice of a pipeline, in order."""
    held = workspace.metastore.held_slices(pipeline)
    now = workspace.metastore.now() if held else None
    return [
        Term(slice_, since, since + workspace.project.held.delta, now)
        for slice_ in held
        if now is not None and (since := slice_.verdict.created_at) is not None
    ]


def refuse_overdue(found: list[Term]) -> None:
    """Raise AuditFailed ``slice.overdue`` when the term of a held slice is over."""
    over = [term for term in found if term.over]
    if over:
        pipeline = over[0].held.verdict.pipeline
        raise AuditFailed(
            "slice.overdue", f"{pipeline}: {over[0].text}", where=f"pipeline {pipeline}", do=over[0].do
        )


def check_held_deadlines(
    workspace: Workspace, pipeline: str, tell: Callable[[str], None]
) -> list[dict[str, str]]:
    """Return notices for held slices that need a decision soon; raises as `refuse_overdue`."""
    found = terms(workspace, pipeline)
    notices = [term.notice() for term in found if term.near]
    for notice in notices:
        tell(f"{notice['id']}: {notice['what']}")
    refuse_overdue(found)
    return notices
