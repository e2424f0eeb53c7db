"""Delta sources whose options let them continue when rows change: what they then do not see, or see twice."""

from __future__ import annotations

from collections.abc import Iterator

from drawdown.query.checks.subject import Subject
from drawdown.verdicts import PlanVerdict

_EFFECTS = {
    "skipChangeCommits": "passes over every commit that changes or deletes rows, and with it over what the"
    " commit adds",
    "ignoreChanges": "reads rewritten files whole: rows in them that did not change come again",
}


def changing_tables(subject: Subject) -> Iterator[PlanVerdict]:
    """Warnings ``source.hidden-changes``, one an option (Delta's documents, "Table streaming reads")."""
    for name, source in subject.pipeline.streaming_sources.items():
        for option, effect in _EFFECTS.items():
            if source.format in ("delta", "table") and str(source.options.get(option)).lower() == "true":
                yield PlanVerdict(
                    "warning",
                    "source.hidden-changes",
                    f"source {name} {effect} ({option})",
                    do="stream its changes with readChangeFeed, or read the table with `static: true`",
                    about=f"source {name}",
                )
