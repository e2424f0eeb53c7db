"""Where an actor may die, and what may refuse it."""

from __future__ import annotations

from tests.model.actions import Moment

# Where a drain that dies has judged its slice, and where its rows are visible.
OF_A_DRAIN = (
    "lease.take",
    "run.open",
    "checkpoint.note",
    "past.settle",
    "query.start",
    "batch.files",
    "batch.stage",
    "batch.reject",
    "batch.note",
    "batch.show",
    "batch.end",
    "commits.note",
    "quarantine.publish",
    "verdict.note",
    "publish.commit",
    "publish.note",
    "run.close",
)
ORDER = (*OF_A_DRAIN[:2], "replay.judge", "replay.note", "replay.plan", *OF_A_DRAIN[2:])
DEATHS = tuple(
    (when, step)
    for step in OF_A_DRAIN
    for when in ("before", "after")
    if (when, step) != ("after", "query.start")
)


def comes_after(moment: Moment, step: str) -> bool:
    """Whether what the step makes true is true when an actor dies at the moment."""
    mine, other = ORDER.index(moment.step), ORDER.index(step)
    return mine > other or (mine == other and moment.when == "after")


REFUSALS: dict[str, set[str]] = {
    "drain": set(),
    "backfill": {"replay.open", "replay.nothing-visible", "replay.waiting", "replay.reach", "replay.decided"},
    "replay_quarantine": {"quarantine.none", "quarantine.unfinished"},
    "decide": {"slice.none-held"},
    "drop": {"quarantine.none", "quarantine.unfinished"},
    "rename": {"rename.open-run", "rename.unknown"},
    "remove": set(),
    "rewind": {"sink.between", "sink.behind", "sink.vacuumed", "checkpoint.not-kept"},
    "snapshot": {"rebuild.unfinished", "checkpoint.nothing"},
    "restore": {"sink.between", "sink.behind", "sink.vacuumed", "checkpoint.no-snapshot"},
    "rebuild": {"rebuild.nothing-live", "rebuild.more-late", "audit.fail"},
    "approve": {
        "rebuild.none",
        "rebuild.not-compared",
        "rebuild.waiting",
        "rebuild.more-late",
        "rebuild.readers",
        "rebuild.nothing-live",
    },
    "rollback": {
        "rebuild.not-swapped",
        "rebuild.pruned",
        "rebuild.nothing-live",
        "rebuild.readers",
        "sink.vacuumed",
    },
    "discard": {"rebuild.none", "rebuild.nothing-live"},
    "upkeep": set(),
    "read_on": {"source."},
    "copy": {"source."},
}
"""What may refuse a rule in the states that the rules come to; nothing is changed then."""
UNFINISHED = {"rebuild.unfinished", "metastore.behind", "checkpoint.torn"}
"""What may refuse any rule while something is cut off."""


OF_A_REPLAY = tuple((when, f"replay.{step}") for step in ("stage", "commit") for when in ("before", "after"))
OF_THE_QUARANTINE = tuple(
    (when, f"replay.{step}") for step in ("judge", "note", "plan") for when in ("before", "after")
)
OF_A_SWAP = tuple((w, f"rebuild.{step}") for step in ("begin", "swap", "note") for w in ("before", "after"))
OF_A_ROLL_BACK = tuple((w, f"rollback.{s}") for s in ("begin", "commit", "note") for w in ("before", "after"))
OF_A_REWIND = (
    *((w, f"recovery.{s}") for s in ("mark", "sink", "forget") for w in ("before", "after")),
    ("before", "recovery.sink", 2),
    ("before", "table.restore"),
    ("before", "table.restore", 2),
)
OF_A_REBUILD = (*DEATHS, ("before", "rebuild.compare"), ("after", "rebuild.compare"))
