"""Scripts of rules, each of which has shown a finding; `Scenario.finding` is its number in the review.

A step is a rule's name and what it is given. Each failed before the register of changes, but for those that
name no finding. ``quick`` ones are of `make test`, the others of `make test-all`.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.model.world import Step


@dataclass(frozen=True)
class Scenario:
    """`finding`: its number in the review; ``beyond`` is what only this test has shown."""

    name: str
    finding: str
    steps: tuple[Step, ...]
    kind: str = "append"
    quick: bool = False

    def __str__(self) -> str:
        return f"{self.finding} {self.name}"


ROWS: Step = ("land", ("ok", 1), ("ok", 7), ("ok", 13), ("ok", 19), ("ok", 30))
MORE: Step = ("land", ("ok", 31), ("ok", 50))
LATER: Step = ("land", ("ok", 52), ("ok", 60))

SCENARIOS: tuple[Scenario, ...] = (
    Scenario(
        "a drain sweeps while a replay writes",
        "1.1",
        (
            ROWS,
            ("drain",),
            MORE,
            ("drain", ("before", "batch.note")),
            ("amid", ("backfill", 0, 24), ("before", "table.commit"), ("drain",)),
            ("check_ways_out",),
        ),
        quick=True,
    ),
    Scenario(
        "a sweep after a swap takes what a roll back needs",
        "1.2",
        (
            ROWS,
            ("drain", ("before", "run.close")),
            ("rebuild",),
            ("approve",),
            LATER,
            ("drain",),
            ("roll_back",),
        ),
    ),
    Scenario(
        "a column in the middle, then a replay",
        "1.3",
        (ROWS, ("drain",), ("add_column",), MORE, ("drain",), ("backfill", 0, 24)),
    ),
    Scenario(
        "a column in the middle, in update mode",
        "1.3",
        (ROWS, ("drain",), ("add_column",), MORE, ("drain",)),
        kind="update",
        quick=True,
    ),
    Scenario(
        "a Delta source made again",
        "1.4",
        (("deliver", 1), ("deliver", 2), ("copy",), ("remake_source",), ("deliver", 3), ("copy",)),
    ),
    Scenario(
        "a Delta source made again, and the old one brought back",
        "",
        (
            ("deliver", 1),
            ("copy",),
            ("remake_source",),
            ("deliver", 2),
            ("copy",),
            ("bring_back",),
            ("deliver", 3),
            ("copy",),
        ),
    ),
    Scenario(
        "another pipeline drains while a slice is committed",
        "1.6",
        (("deliver", 1), ROWS, ("amid", ("drain",), ("before", "table.commit"), ("copy",))),
    ),
    Scenario("a record that is not UTF-8", "1.8", (("land", ("ok", 1), ("not-utf8", None)), ("drain",))),
    Scenario(
        "replays of a part of a day where the time column is the day",
        "2.1",
        (ROWS, ("drain",), MORE, ("drain",), *(("backfill", h, h + 6) for h in (0, 6, 12, 18))),
        kind="day",
    ),
    Scenario(
        "a replay by the end of windows",
        "2.2",
        (
            ("land", ("ok", 1.5), ("ok", 22.5), ("ok", 23.5), ("ok", 24.5), ("ok", 47.5), ("ok", 50)),
            ("drain",),
            ("land", ("ok", 75)),
            ("drain",),
            ("backfill", 24, 48),
        ),
        kind="windows by their end",
    ),
    Scenario(
        "a replay of windows with a start offset",
        "2.2",
        (
            ("land", ("ok", 1.5), ("ok", 23.5), ("ok", 24.1), ("ok", 24.5), ("ok", 50)),
            ("drain",),
            ("land", ("ok", 75)),
            ("drain",),
            ("backfill", 0, 24),
        ),
        kind="windows with an offset",
    ),
    Scenario(
        "a replay in update mode of a key that came twice",
        "2.3",
        (ROWS, ("drain",), ROWS, ("drain",), MORE, ("drain",), ("backfill", 0, 24)),
        kind="update",
    ),
    Scenario(
        "a row of the quarantine that a replay has brought",
        "2.4",
        (
            ("land", ("ok", 1), ("bad", 2), ("ok", 30)),
            ("drain",),
            MORE,
            ("drain",),
            ("fix_rule",),
            ("backfill", 0, 24),
            ("replay_quarantine",),
        ),
    ),
    Scenario(
        "a swap amid a replay",
        "2.6",
        (
            ROWS,
            ("drain",),
            MORE,
            ("drain",),
            ("rebuild",),
            ("amid", ("backfill", 0, 24), ("after", "replay.stage"), ("approve",)),
        ),
    ),
    Scenario(
        "a rewind that dies between two tables",
        "3.1",
        (
            ("land", ("ok", 1), ("bad", 2)),
            ("drain",),
            ("mark",),
            ("land", ("ok", 30), ("bad", 31)),
            ("drain",),
            ("rewind", -1, ("before", "table.restore", 2)),
            ("check_ways_out",),
            ("drain",),
        ),
    ),
    Scenario(
        "a rewind behind which a slice was released late",
        "3.2",
        (
            ROWS,
            ("drain",),
            ("land", ("marker", 31)),
            ("drain",),
            MORE,
            ("drain",),
            ("mark",),
            LATER,
            ("drain",),
            ("decide", "release"),
            ("rewind",),
            ("drain",),
        ),
        kind="unordered",
    ),
    Scenario(
        "a rewind behind which an interval was replayed",
        "3.2",
        (
            ("land", ("ok", 1), ("bad", 2), ("ok", 30)),
            ("drain",),
            MORE,
            ("drain",),
            ("mark",),
            LATER,
            ("drain",),
            ("fix_rule",),
            ("backfill", 0, 24),
            ("rewind",),
            ("drain",),
        ),
    ),
    Scenario(
        "a swap, and what was drained since the comparison, seen by a stream",
        "4.1",
        (
            ROWS,
            ("drain",),
            ("read_on",),
            ("rebuild",),
            MORE,
            ("drain",),
            ("read_on",),
            ("approve",),
            ("drain",),
            ("read_on",),
        ),
    ),
    Scenario(
        "a stream that begins behind a swap takes what the swap has brought",
        "",
        (ROWS, ("drain",), ("land", ("late", 20)), ("rebuild",), ("approve",), ("drain",), ("read_on",)),
    ),
    Scenario(
        "a roll back after the old files were vacuumed",
        "4.3",
        (
            ROWS,
            ("drain",),
            ("rebuild",),
            ("approve",),
            ("vacuum_by_hand",),
            ("roll_back",),
            ("check_ways_out",),
        ),
    ),
    Scenario(
        "other keys of a table in update mode",
        "5.4",
        (ROWS, ("drain",), ("change_keys", "[k, at]"), MORE, ("is_refused", ("drain",))),
        kind="update",
    ),
    Scenario(
        "a row of the quarantine waits in a held slice, its interval is replayed, the slice released",
        "beyond",
        (
            ("land", ("ok", 1), ("bad", 2), ("ok", 30)),
            ("drain",),
            MORE,
            ("drain",),
            ("fix_rule",),
            ("land", ("marker", 60)),
            ("replay_quarantine",),
            ("backfill", 0, 24),
            ("decide", "release"),
        ),
    ),
    Scenario(
        "a roll back amid a replay",
        "beyond",
        (
            ROWS,
            ("drain",),
            MORE,
            ("drain",),
            ("rebuild",),
            ("approve",),
            ("amid", ("backfill", 0, 24), ("after", "replay.stage"), ("roll_back",)),
        ),
    ),
    Scenario(
        "a rewind amid a replay",
        "beyond",
        (
            ROWS,
            ("drain",),
            ("mark",),
            ("land", ("late", 3), ("ok", 31)),
            ("drain",),
            MORE,
            ("drain",),
            ("amid", ("backfill", 0, 24), ("after", "replay.stage"), ("rewind",)),
            ("drain",),
        ),
    ),
    Scenario(
        "an upkeep amid a replay",
        "",
        (
            ROWS,
            ("drain",),
            MORE,
            ("drain",),
            ("amid", ("backfill", 0, 24), ("before", "table.commit"), ("upkeep", 1)),
        ),
    ),
    Scenario(
        "an upkeep hours after a swap, with rows in the quarantine",
        "",
        (
            ("land", ("ok", 1), ("bad", 2)),
            ("drain",),
            ("rebuild",),
            ("approve",),
            LATER,
            ("drain",),
            ("upkeep", 4),
            ("fix_rule",),
            ("replay_quarantine",),
        ),
    ),
    Scenario(
        "a replay sweeps nothing of a drain that is at work",
        "",
        (
            ROWS,
            ("drain",),
            MORE,
            ("drain",),
            LATER,
            ("amid", ("drain",), ("before", "publish.commit"), ("backfill", 0, 24)),
        ),
    ),
    Scenario(
        "late rows of a window come in by a replay",
        "",
        (
            ("land", ("ok", 1.5), ("ok", 2.5), ("ok", 10)),
            ("drain",),
            ("land", ("late", 1.7), ("ok", 9.5), ("ok", 30)),
            ("drain",),
            ("backfill", 0, 6),
        ),
        kind="windows",
    ),
    Scenario(
        "a death amid a drain, a replay, a held slice, a rewind",
        "",
        (
            ROWS,
            ("drain", ("after", "batch.note")),
            MORE,
            ("drain",),
            ("mark",),
            ("backfill", 0, 24),
            ("land", ("marker", 55), ("bad", 60)),
            ("drain", ("before", "verdict.note")),
            ("drain",),
            ("decide", "discard"),
            LATER,
            ("drain",),
            ("check_ways_out",),
        ),
    ),
    Scenario(
        "a swap and a roll back that are cut off",
        "",
        (
            ROWS,
            ("drain",),
            ("rebuild",),
            ("approve", ("after", "rebuild.begin")),
            ("finish",),
            MORE,
            ("drain",),
            ("roll_back", ("after", "rollback.commit")),
            ("finish",),
            ("drain",),
            ("upkeep",),
        ),
    ),
)
