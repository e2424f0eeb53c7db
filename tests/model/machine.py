"""Rules in any order, and what each go of them is about.

A go has a kind of pipeline, and themes: rules of other themes are left out, so that in a few steps features
meet each other more than once. A story is a row of steps with choices at each, the ways by which a state
comes about that single rules seldom reach. The choices are a plain generator's: hypothesis spends its first
goes on the simplest step twenty times over, and a step here takes a second.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tests.model.model import HOUR, KINDS, Generation, Kind
from tests.model.places import (
    DEATHS,
    OF_A_REBUILD,
    OF_A_REPLAY,
    OF_A_REWIND,
    OF_A_ROLL_BACK,
    OF_A_SWAP,
    OF_THE_QUARANTINE,
)
from tests.model.project import FIRST, WINDOWS
from tests.model.sinks import DeltaRows
from tests.model.world import Step, World, play

_HOURS_A_FILE = 8
_HOURS_BEHIND = 4
"""How far the watermark is to be behind an interval of windows: what is read ahead, and a window."""
_WITHOUT = frozenset(os.environ.get("MODEL_WITHOUT", "").split(","))
"""Rules, kinds of rows and of pipelines that are left out, by hand."""

_DECLARED = tuple(f"{kind}, declared" for kind in WINDOWS)
PIPELINES = (
    *("append",) * 4, *("unordered",) * 3, *("update",) * 3, *("day",) * 2, *WINDOWS, *_DECLARED,
)  # fmt: skip
OF_OTHER_SINKS = {
    "postgres": ("append", "append", "update"),
    "kafka": ("append",),
    "parquet": ("append",),
}
THEMES = (
    {"replays", "quarantine"},
    {"replays", "rebuilds"},
    {"replays", "back"},
    {"rebuilds", "others"},
    {"quarantine", "back", "losses"},
    {"quarantine", "patches", "replays"},
    {"rebuilds", "back"},
    {"sources", "others"},
    {"edits", "quarantine", "patches"},
    {"edits", "replays", "losses"},
    {"edits", "quarantine", "others", "puts"},
    {"replays", "quarantine", "back", "rebuilds", "others", "sources"},
)
_ROWS: tuple[Kind, ...] = (*KINDS, "ok", "ok", "ok", "late", "bad")
_LEFT_OUT = {"update": {"null"}, "windows": {"bad", "worst", "marker"}}
"""Kinds of rows: a key is never NULL; what comes out of windows has no such rules."""

_PAIRS: tuple[Step, ...] = (
    ("drain",), ("drain", ("before", "batch.note")), ("read_on",), ("copy",), ("approve",), ("roll_back",),
    ("rewind",), ("upkeep", 1), ("decide", "release"), ("decide", "discard"), ("replay_quarantine",),
)  # fmt: skip
"""What others do while one is at work."""

_WAITING, _ALONE = {"replay_quarantine"}, {"replay.commit", "table.commit"}

_CLOSED = -1
"""The end of the last day that is closed."""
_CUT = ("drain", ("before", "run.close"))
_SHOWN: tuple[Step, ...] = tuple(
    ("drain", (when, step))
    for step in ("batch.note", "batch.show", "batch.end")
    for when in ("before", "after")
)
STORIES: tuple[tuple[str, tuple[tuple[Step | None, ...], ...]], ...] = (
    (
        "edits",
        (
            (("land", "marker", "ok"), ("land", "ok", "bad")),
            (("drain",), _CUT, ("drain", ("before", "publish.commit"))),
            (("land", "ok", "bad"), None),
            (("drain",), None),
            (("toggle",),),
            (("land", "ok"), ("land", "marker"), None),
            (("drain",), ("drain", ("before", "publish.commit"))),
            (("toggle",), ("upkeep", 1), None),
            (("decide", "discard"), ("decide", "release")),
            (("drain",),),
        ),
    ),
    (
        "edits",
        (
            (("fix_rule", True), ("fix_rule", False)),
            (("land", "bad", "ok"), ("land", "bad", "bad")),
            _SHOWN,
            (("fix_rule", True), ("fix_rule", False)),
            (("land", "ok"), None),
            (("drain",),),
            (("fix_rule", True), None),
            (("replay_quarantine",), ("backfill", 0, _CLOSED), ("drop",)),
            (("backfill", 0, _CLOSED), None),
        ),
    ),
    (
        "replays",
        (
            (("land", "ok", "ok"),),
            (("drain", ("before", "batch.note")), ("drain", ("before", "publish.commit")), _CUT),
            tuple(("perhaps_amid", ("backfill", 0, 24), ("before", "table.commit"), x) for x in _PAIRS[:2]),
        ),
    ),
    (
        "replays",
        (
            (("land", "ok", "ok"), ("again",)),
            (("drain",),),
            (("backfill", 0, 24), ("backfill", 6, 12), ("backfill", 24, 48)),
        ),
    ),
    (
        "quarantine",
        (
            (("land", "bad", "ok"),),
            (("drain",),),
            (("fix_rule", True),),
            (("later",), None),
            (("drain",),),
            (("backfill", 0, _CLOSED), ("land", "marker"), None),
            (("replay_quarantine",),),
            (("backfill", 0, _CLOSED), None),
            (("decide", "release"), ("decide", "discard"), None),
        ),
    ),
    (
        "back",
        (
            (("land", "marker", "bad"), None),
            (("drain",),),
            (("land", "ok", "bad"),),
            (("drain",),),
            (("mark",),),
            (("land", "ok", "bad"),),
            (("drain",),),
            (("decide", "release"), ("backfill", 0, 24), None),
            (("rewind",), ("rewind", -1, ("before", "table.restore", 2)), ("rewind", -1, OF_A_REWIND[3])),
            (("drain",), ("finish",)),
        ),
    ),
    (
        "rebuilds",
        (
            (("land", "ok", "ok"),),
            (("drain",), _CUT),
            (("read_on",), None),
            (("rebuild",),),
            (("land", "ok"), None),
            (("drain",),),
            (("read_on",), None),
            (("approve",), ("perhaps_amid", ("backfill", 0, 24), ("after", "replay.stage"), ("approve",))),
            (("land", "ok"), None),
            (("drain",), None),
            (("upkeep", 1), ("vacuum_by_hand",), None),
            (("roll_back",), ("read_on",)),
        ),
    ),
    (
        "sources",
        (
            (("deliver", 1), ("deliver", 2)),
            (("copy",),),
            (("remake_source",), None),
            (("deliver", 1),),
            (("copy",), ("land", "ok")),
            (("bring_back",), ("bring_back",), None),
            (("deliver", 1), None),
            (("perhaps_amid", ("drain",), ("before", "table.commit"), ("copy",)),),
        ),
    ),
)


def _stays(world: World, mark: Generation) -> bool:
    """Whether it is where the world stands, so that going there is nothing."""
    return len(mark.batches) == len(world.model.live.batches)


def _settled(world: World) -> bool:
    live = world.model.live
    return world.clean and not live.queue and not live.staged


CAN: dict[str, Callable[[World], object]] = {
    "decide": lambda w: w.model.holds,
    "mark": lambda w: w.clean and not (w.marks and _stays(w, w.marks[-1][1])),
    "rewind": lambda w: w.clean and not all(_stays(w, mark) for _, mark in w.marks),
    "take_snapshot": lambda w: w.clean and w.model.live.batches and not w.model.live.queue,
    "restore": lambda w: w.snapshot is not None and not _stays(w, w.snapshot),
    "rebuild": lambda w: w.model.live.batches,
    "approve": lambda w: w.model.shadow is not None,
    "give_up": lambda w: w.model.shadow is not None,
    "roll_back": lambda w: w.model.before is not None and w.model.shadow is None,
    "replay_quarantine": lambda w: w.model.live.quarantine,
    "backfill": lambda w: w.model.live.batches and w.sink.replays,
    "vacuum_by_hand": lambda w: w.model.live.visible >= 0,
    "read_on": lambda w: w.model.live.decided and w.kind in ("append", "unordered"),
    "copy": lambda w: w.delivered,
    "remake_source": lambda w: w.delivered and not w.undelivered and w.delivered_before is None,
    "bring_back": lambda w: w.delivered_before is not None,
    "toggle": lambda w: len(w.sink.directs) > 1 and not w.has_windows,
    "drop": lambda w: "open" in w.model.live.quarantine.values(),
    "patch": lambda w: w.clean and not w.has_windows and "open" in w.model.live.quarantine.values(),
    "lose": lambda w: w.model.unread and w.begun_under is None and not w.has_windows and not w.reads,
    "rename": lambda w: w.clean and not w.reads and not w.model.shadow and not w.model.before,
    "put_back": lambda w: w.clean and _settled(w) and w.model.live.visible >= 0,
    "start_over": lambda w: w.clean and not w.model.shadow and not w.reads,
    "add_column": lambda w: (
        w.kind in ("append", "update") and w.sink.replays and w.clean and not w.reads and not w.model.shadow
    ),
}
"""When a rule makes sense; none but `finish` and those of others does while something is cut off."""
_ANY_TIME = {
    "finish",
    "land",
    "later",
    "again",
    "fix_rule",
    "deliver",
    "copy",
    "remake_source",
    "bring_back",
}


_ALWAYS = {"land", "drain", "finish", "story"}
_RULES: list[tuple[str, tuple[str, ...], Callable[[Machine], None]]] = []


def of(theme: str, *names: str) -> Callable[[Callable[[Machine], None]], Callable[[Machine], None]]:
    """A rule of a theme, which stands for steps of these names."""

    def note(rule: Callable[[Machine], None]) -> Callable[[Machine], None]:
        _RULES.append((theme, names, rule))
        return rule

    return note


def told(ends: Counter[str]) -> str:
    """How often each rule was accepted, refused or cut off, a line each."""
    rules = sorted({each.partition(":")[0] for each in ends})
    return "\n".join(
        f"  {rule}: "
        + ", ".join(
            f"{n} {end.partition(': ')[2]}" for end, n in sorted(ends.items()) if end.startswith(f"{rule}:")
        )
        for rule in rules
    )


class Machine:
    """One go. `found`: what was wrong, if anything was; the go is over then."""

    def __init__(
        self, root: Path, spark: SparkSession, seed: str, store_url: str, sink: DeltaRows | None = None
    ) -> None:
        self.random = random.Random(seed)
        sink = sink or DeltaRows()
        pipelines = PIPELINES if sink.goes_back else OF_OTHER_SINKS[sink.name]
        kind = self._one([each for each in pipelines if each not in _WITHOUT])
        plain = not kind.startswith("windows")
        direct = self._one(sink.directs) if plain else sink.directs[0]
        several = plain and self._one((True, False))
        self.world = World(root, spark, kind, store_url, sink, direct, several)
        self.themes = {"rows", *(self._one(THEMES) if plain else {"replays"})}
        self.themes -= set() if sink.goes_back else {"rebuilds", "back"}
        self.themes -= set() if sink.replays else {"replays"}
        if not sink.goes_back:
            self.themes |= {"edits", "quarantine"}
        self.world.compares_quarantine = plain and not self.themes & {"rebuilds", "back", "replays"}
        # Each go does without a random half of the rules, so that rare pairs meet.
        self.off = {
            rule for _, _, rule in _RULES if rule.__name__ not in _ALWAYS and self._one((True, False))
        }
        self.hour, self.taken, self.found = 0, 0, ""

    def __str__(self) -> str:
        how = "direct" * self.world.direct + " one file a batch" * self.world.several
        about = f"{self.world.sink.name} {self.world.kind}, {how}, {', '.join(sorted(self.themes))}"
        return "\n".join([about, *self.world.done, told(self.world.ends)])

    def run(self, steps: int) -> None:
        self._do("land", "ok", "ok")
        self.hour = 20
        self._do("land", "ok", "ok" if self.world.has_windows else "bad")
        self._do("drain")
        while self.taken < steps and not self.found:
            rules = [
                rule
                for theme, names, rule in _RULES
                if theme in self.themes and rule not in self.off and any(map(self.can, names))
            ]
            # What is cut off is not left so for long.
            often = Machine.finish if self.world.pending else Machine.story
            (often if self.random.random() < 0.4 else self._one(rules))(self)
        if self.world.pending and not self.found:
            self._try(self.world.check_ways_out)
        self._do("drain")

    def _one(self, of: Sequence[Any]) -> Any:
        return self.random.choice(of)

    def _maybe(self, places: Sequence[Any]) -> Any:
        return self._one(places) if self.random.random() < 0.35 else None

    def can(self, name: str) -> bool:
        if self.found or name in _WITHOUT or (self.world.pending and name not in _ANY_TIME):
            return False
        if name == "finish" and not self.world.pending:
            return False
        return bool(CAN.get(name, lambda _: True)(self.world))

    def _do(self, name: str, *given: Any) -> None:
        """A step, if it makes sense; what it finds is kept, and the example is over."""
        if not self.can("backfill" if name == "perhaps_amid" else name):
            return
        if name == "perhaps_amid" and not (self.can(given[2][0]) and self.can(given[0][0])):
            return
        if name == "later":
            self.hour += 24
            name, given = "land", ("ok",)
        if name in ("land", "again"):
            name, given = "land", self._rows(given, again=name == "again")
        elif name == "deliver":
            given = tuple(range(self.world.delivered.total(), self.world.delivered.total() + given[0]))
        self._try(lambda: play(self.world, [(name, *given)]))

    def _try(self, step: Callable[[], None]) -> None:
        self.taken += 1
        try:
            step()
        except Exception as wrong:  # noqa: BLE001  whatever it is, it is told
            self.found = f"{self}\n{type(wrong).__name__}: {wrong}"

    def _rows(self, kinds: tuple[Kind, ...], *, again: bool) -> tuple[tuple[Kind, float], ...]:
        """Each at a time of its own; `again`: rows at the times of the first."""
        if again:
            return (("ok", 0), ("ok", 1))
        self.hour += _HOURS_A_FILE
        # A window may begin between two full hours.
        within = self._one((0, 0.1, 0.5)) if self.world.has_windows else 0
        return tuple(
            (kind, self.hour + place * 2 - 20 * (kind == "late") + within) for place, kind in enumerate(kinds)
        )

    def _finished(self) -> int:
        """Hours of event time that the pipeline is finished with, and that readers see."""
        live, landed = self.world.model.live, self.world.model.landed
        rows = [landed[each] for batch in live.batches[: live.visible + 1] for each in batch]
        times = [row.at for row in rows if row.at is not None and row.passes(self.world.model.fixed)]
        passed = int((max(times) - FIRST) / HOUR) if times else 0
        return passed - _HOURS_BEHIND * self.world.has_windows

    def _interval(self) -> tuple[int, int]:
        """Mostly one that can be replayed; any other now and then."""
        size = 24 if self.world.kind == "day" else self._one((6, 24))
        whole = self._finished() // size
        if whole < 1 or self.random.random() < 0.15:
            start = self.random.randrange(0, self.hour + 6, 6)
            return start, start + self._one((6, 24))
        first = self.random.randrange(whole)
        return first * size, self._one((first + 1, whole)) * size

    # Rows

    @of("rows", "land")
    def land(self) -> None:
        out = _LEFT_OUT.get(self.world.kind.split()[0], set())
        kinds = self.random.choices([k for k in _ROWS if k not in _WITHOUT], k=self.random.randint(1, 4))
        self._do("land", *(kind if kind not in out else "ok" for kind in kinds))

    @of("rows", "drain")
    def drain(self) -> None:
        if not self.world.model.unread and self.random.random() < 0.7:
            self.land()
        self._do("drain", self._maybe(DEATHS))

    @of("rows", "drain")
    def story(self) -> None:
        for slot in self._one([slots for theme, slots in STORIES if theme in self.themes]):
            step = self._one(slot)
            if step is not None:
                name, *given = step
                if given[-1:] == [_CLOSED]:
                    given[-1] = max(self._finished() // 24, 1) * 24
                self._do(name, *given)

    # Replays

    @of("replays", "backfill")
    def backfill(self) -> None:
        self._do("backfill", *self._interval(), self._maybe(OF_A_REPLAY))

    @of("replays", "backfill")
    def amid_a_replay(self) -> None:
        place = self._one((*OF_A_REPLAY, ("before", "table.commit")))
        # A replay of the quarantine waits until no interval is being replaced: here it would wait for ever.
        others = [each for each in _PAIRS if each[0] not in _WAITING or place[1] not in _ALONE]
        self._do("perhaps_amid", ("backfill", *self._interval()), place, self._one(others))

    # Quarantine and verdicts

    @of("quarantine", "fix_rule")
    def fix_rule(self) -> None:
        self._do("fix_rule", not self.world.model.fixed)

    @of("quarantine", "replay_quarantine")
    def replay_quarantine(self) -> None:
        self._do("replay_quarantine", self._maybe((*OF_THE_QUARANTINE, *DEATHS)))

    @of("rows", "decide")
    def decide(self) -> None:
        self._do("decide", self._one(("release", "discard")))

    # A spec that is edited, a pipeline that moves, things that are put back

    @of("edits", "toggle")
    def toggle(self) -> None:
        self._do("toggle")

    @of("edits", "fix_rule")
    def edit_rule(self) -> None:
        self._do("fix_rule", not self.world.model.fixed)

    @of("quarantine", "drop")
    def drop(self) -> None:
        self._do("drop")

    @of("patches", "patch")
    def patch(self) -> None:
        self._do("patch")

    @of("losses", "lose")
    def lose(self) -> None:
        self._do("land", *self._one((("ok",), ("ok", "bad"))))
        if self._one((True, False)):
            self._do("drain", self._one((("after", "batch.stage"), ("before", "batch.note"))))
        self._do("lose")

    @of("edits", "rename")
    def rename(self) -> None:
        self._do("rename")

    @of("edits", "start_over")
    def start_over(self) -> None:
        # Rows of a topic, and the log of a file sink, stay.
        if self.world.sink.replays:
            self._do("start_over", True)

    @of("puts", "put_back")
    def put_back(self) -> None:
        what = self._one(("sink", "quarantine", "metastore"))
        if what != "sink" or self.world.sink.replays:
            self._do("put_back", what)

    # Back

    @of("back", "mark")
    def mark(self) -> None:
        self._do(self._one(("mark", "take_snapshot")))

    @of("back", "rewind")
    def rewind(self) -> None:
        self._do("rewind", self.random.randrange(len(self.world.marks)), self._maybe(OF_A_REWIND))

    @of("back", "restore")
    def restore(self) -> None:
        self._do("restore", self._maybe(OF_A_REWIND))

    # Rebuilds

    @of("rebuilds", "rebuild")
    def rebuild(self) -> None:
        self._do("rebuild", self._maybe(OF_A_REBUILD))

    @of("rebuilds", "approve")
    def approve(self) -> None:
        self._do("approve", self._maybe(OF_A_SWAP))

    @of("rebuilds", "give_up")
    def give_up(self) -> None:
        self._do("give_up")

    @of("rebuilds", "roll_back")
    def roll_back(self) -> None:
        self._do("roll_back", self._maybe(OF_A_ROLL_BACK))

    @of("rows", "finish")
    def finish(self) -> None:
        if self._one((True, False)):
            # Refused, or nothing had begun.
            self._try(lambda: play(self.world, [("drain",)]))
        self._do("finish")

    # Others

    @of("others", "upkeep")
    def upkeep(self) -> None:
        self._do("upkeep", self._one((1, 4)))

    @of("others", "read_on")
    def read_on(self) -> None:
        self._do("read_on")

    @of("others", "add_column")
    def add_column(self) -> None:
        if "extra" not in self.world.columns:
            self._do("add_column")

    @of("sources", "deliver", "copy", "remake_source", "bring_back")
    def source(self) -> None:
        self._do(*self._one((("deliver", 1), ("copy",), ("remake_source",), ("bring_back",))))
