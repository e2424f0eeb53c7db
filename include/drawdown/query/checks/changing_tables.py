"""Delta sources whose options let them continue when rows change: which changes they miss or read twice."""

from __future__ import annotations

from collections.abc import Iterator

from drawdown.plan_verdicts import PlanVerdict
from drawdown.query.checks.subject import Subject

_EFFECTS = {
    "skipChangeCommits": "skips every commit that changes or deletes rows, including the rows it adds",
    "ignoreChanges": "reads rewritten files completely, including unchanged rows a second time",
}


def changing_tables(subject: Subject) -> Iterator[PlanVerdict]:
    """Yield warnings ``source.hidden-changes``, one per option (Delta's docs, "Table streaming reads")."""
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
