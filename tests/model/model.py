"""What must be true, in plain Python over the landed rows; nothing of the library is asked.

A pipeline without state: every row that passes the rules is in the table once, and says by which version of
the transform it was made. A drain is one slice, of one batch or of one a file; what was judged waits in a
queue. With direct publishing a batch is visible before its slice is judged.
"""

from __future__ import annotations

import copy
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

Kind = Literal["ok", "late", "null", "bad", "worst", "malformed", "not-utf8", "marker"]
KINDS: tuple[Kind, ...] = ("ok", "late", "null", "bad", "worst", "malformed", "not-utf8", "marker")
HOUR = timedelta(hours=1)
BROKEN = ("malformed", "not-utf8")


@dataclass(frozen=True)
class Row:
    """`at` is None where the record has none."""

    id: int
    at: datetime | None
    kind: Kind

    def passes(self, fixed: bool) -> bool:
        """The rule: a corrected one lets ``bad`` rows through, and no rule the ``worst``."""
        return self.kind not in BROKEN and self.kind != "worst" and (fixed or self.kind != "bad")

    def within(self, start: datetime, end: datetime) -> bool:
        return self.at is not None and start <= self.at < end


@dataclass
class Slice:
    """Rows that one verdict is about."""

    batches: list[int]
    rows: Counter[tuple[int, int]]
    held: bool


@dataclass
class Generation:
    """What one generation of the checkpoint has come to.

    Attributes:
        batches: what each batch has read, ids.
        staged: batches and rows (id, version) that are not judged yet.
        queue: slices that were judged and are not visible.
        decided: by batch, what became of its slice.
        replays: of intervals.
        brought: rows of the quarantine that they have brought.
        patched: rows of the quarantine that came through with other values.
        failed: of a shadow: its slice did not pass.
        visible: the last batch that was published; what replays stand on.
    """

    version: int
    batches: list[list[int]] = field(default_factory=list)
    staged: list[int] = field(default_factory=list)
    rows: Counter[tuple[int, int]] = field(default_factory=Counter)
    queue: list[Slice] = field(default_factory=list)
    visible: int = -1
    table: Counter[tuple[int, int]] = field(default_factory=Counter)
    quarantine: dict[int, str] = field(default_factory=dict)
    decided: dict[int, str] = field(default_factory=dict)
    replays: list[str] = field(default_factory=list)
    brought: set[int] = field(default_factory=set)
    patched: set[int] = field(default_factory=set)
    failed: bool = False

    @property
    def read(self) -> set[int]:
        return {each for batch in self.batches for each in batch}


@dataclass
class Model:
    """All that has landed, and what became of it.

    Attributes:
        ordered: a slice that is held keeps those behind it back.
        keyed: update mode, with the event time as the key.
        appended: every row that a commit of new rows has brought: what a stream reads, once each.
        delivered: what the stream downstream has taken of it; None: it has not begun.
        direct: what the spec says of publishing now.
        one_file: a batch reads one file.
        files: the rows of each, in their order.
        judged_all: no row that was visible before its audit can fail it.
        lost: rows of files that are gone and that no batch has read.
    """

    ordered: bool = True
    keyed: bool = False
    landed: dict[int, Row] = field(default_factory=dict)
    fixed: bool = False
    live: Generation = field(default_factory=lambda: Generation(1))
    shadow: Generation | None = None
    before: Generation | None = None
    appended: Counter[int] = field(default_factory=Counter)
    delivered: Counter[int] | None = None
    direct: bool = False
    one_file: bool = False
    files: list[list[int]] = field(default_factory=list)
    judged_all: bool = True
    lost: set[int] = field(default_factory=set)

    @property
    def at_once(self) -> bool:
        """Whether batches are shown as they come: an edit takes effect behind what is not published."""
        return self.direct and not self.live.queue and not self.live.staged

    @property
    def reads_at(self) -> str:
        """The step of a drain behind which its batch stays what it is."""
        return "batch.end"

    @property
    def unread(self) -> list[int]:
        return [each for each in self.landed if each not in self.live.read | self.lost]

    # One thing after the other

    def land(self, rows: list[Row]) -> None:
        self.landed |= {row.id: row for row in rows}
        self.files.append([row.id for row in rows])

    def drain(self, judge: bool = True, publish: bool = True) -> None:
        """As far as it came; nothing of it is lost in any case."""
        if not judge:
            return
        self.judged_all = True
        self._take(self.live, self.unread)
        self._judge(self.live)
        if publish:
            self.publish()

    def take(self, *, cut_off: bool = False) -> None:
        """What waits is read, and its batch committed; `cut_off`: it is planned at least."""
        self._take(self.live, self.unread)

    def take_first(self) -> None:
        """The first batch of what waits, which is visible already."""
        first = next((each for each in self.files if set(each) & set(self.unread)), [])
        self._take_batch(self.live, first if self.one_file else self.unread)

    def finish(self, under: bool, taken: bool) -> None:
        """A batch that was begun ends under the rules of that time, and nothing else is read."""
        now, self.fixed, self.judged_all = self.fixed, under, True
        if not taken:
            self.take_first()
        self.fixed = now
        self._judge(self.live)
        self.publish()

    def _take(self, of: Generation, ids: list[int]) -> None:
        for file in self.files if self.one_file else [list(ids)]:
            self._take_batch(of, [each for each in file if each in ids])

    def _take_batch(self, of: Generation, ids: list[int]) -> None:
        if not ids:
            return
        at_once = self.at_once and of is self.live
        of.staged.append(len(of.batches))
        of.batches.append(list(ids))
        rows = Counter[tuple[int, int]]()
        for each in ids:
            if self.landed[each].passes(self.fixed):
                rows[each, of.version] += 1
            else:
                of.quarantine[each] = "open"
        if at_once:
            self._show(Slice([of.staged.pop()], rows, held=False))
            self.judged_all = self.judged_all and not self._marked(rows)
        else:
            of.rows += rows

    def _marked(self, rows: Counter[tuple[int, int]]) -> bool:
        return any(self.landed[each].kind == "marker" for each, _ in rows)

    def _judge(self, of: Generation) -> None:
        if not of.staged:
            return
        of.queue.append(Slice(of.staged, of.rows, self._marked(of.rows)))
        of.staged, of.rows = [], Counter()

    def publish(self) -> None:
        """Slices that passed, those behind a held one too where the order does not count."""
        left = []
        for each in self.live.queue:
            if each.held or (left and self.ordered):
                left.append(each)
            else:
                self._show(each)
        self.live.queue = left

    def _show(self, slice_: Slice) -> None:
        self.live.table = self._merged(self.live.table, slice_.rows)
        self.live.visible = max(self.live.visible, *slice_.batches)
        self.live.decided |= dict.fromkeys(slice_.batches, "shown")
        # Once, whatever the table goes through.
        self.appended |= Counter({each: 1 for each, _ in slice_.rows})

    def _merged(
        self, table: Counter[tuple[int, int]], rows: Counter[tuple[int, int]]
    ) -> Counter[tuple[int, int]]:
        """A row is there once, by whatever ways it comes; in update mode the last of its event time."""
        if not self.keyed:
            there = {each for each, _ in table}
            return table + Counter({key: 1 for key in rows if key[0] not in there})
        last = {self.landed[each].at: (each, version) for each, version in [*table, *rows]}
        return Counter(last.values())

    def deliver(self) -> None:
        """To the stream downstream: at first all that the table holds, whatever brought it, then commits."""
        if self.delivered is None:
            self.appended = Counter({each: 1 for each, _ in self.live.table})
        self.delivered = Counter(self.appended)

    @property
    def holds(self) -> bool:
        return any(each.held for each in self.live.queue)

    def release(self) -> None:
        for each in self.live.queue:
            each.held = False
        self.publish()

    def discard(self) -> None:
        for each in self.live.queue:
            if each.held:
                self.live.decided |= dict.fromkeys(each.batches, "discarded")
        self.live.queue = [each for each in self.live.queue if not each.held]
        self.publish()

    def start_over(self) -> None:
        """Nothing was read, and nothing is there."""
        self.live = Generation(self.live.version)

    # Quarantine

    def passing(self, patched: bool = False) -> list[int]:
        """Open rows of the quarantine that the rules of now let through; `patched`: with a small `n`."""
        open_ = [each for each, state in self.live.quarantine.items() if state == "open"]
        return [
            each
            for each in open_
            if self.landed[each].passes(self.fixed) or (patched and self.landed[each].kind not in BROKEN)
        ]

    def stage_passing(self, patched: bool = False) -> bool:
        """They go into a batch of their own; False: there are none."""
        passing = self.passing(patched)
        self.live.patched |= {each for each in passing if patched}
        if not passing:
            return False
        at_once, rows = self.at_once, Counter((each, self.live.version) for each in passing)
        self.live.staged.append(len(self.live.batches))
        self.live.batches.append([])
        self.live.quarantine |= dict.fromkeys(passing, "replayed")
        if at_once:
            self._show(Slice([self.live.staged.pop()], rows, held=False))
            self.judged_all = self.judged_all and not self._marked(rows)
        else:
            self.live.rows += rows
        return True

    def drop(self) -> None:
        """All open rows of the quarantine: a person wants none of them."""
        open_ = [each for each, state in self.live.quarantine.items() if state == "open"]
        self.live.quarantine |= dict.fromkeys(open_, "dropped")

    def replay_quarantine(self, patched: bool = False) -> None:
        if self.stage_passing(patched):
            self.drain()

    # Replays of intervals

    def recomputed(self, start: datetime, end: datetime, visible: int) -> list[int]:
        """What a replay of the interval makes, by what was read until the batch that was visible last."""
        read = {each for batch in self.live.batches[: visible + 1] for each in batch}
        # A row of the quarantine that waits in a later batch comes with that.
        waiting = {each for slice_ in self.live.queue for each, _ in slice_.rows}
        rows = [self.landed[each] for each in sorted(read - waiting)]
        # What a person has dropped stays out.
        kept = [row for row in rows if self.live.quarantine.get(row.id) != "dropped"]
        live = self.live
        through = [row for row in kept if row.passes(self.fixed) or row.id in live.patched]
        return [row.id for row in through if row.within(start, end)]

    def replay(self, start: datetime, end: datetime, visible: int) -> None:
        made = self.recomputed(start, end, visible)
        self.live.replays.append(f"{start} to {end}")
        kept = {key: n for key, n in self.live.table.items() if not self.landed[key[0]].within(start, end)}
        new = Counter((each, self.live.version) for each in made)
        self.live.table = self._merged(Counter(kept), new)
        for each in made:
            # It is in the table: nobody may let it in a second time.
            if self.live.quarantine.get(each) == "open":
                self.live.quarantine[each] = "replayed"
                self.live.brought.add(each)

    # Back

    def mark(self) -> Generation:
        return copy.deepcopy(self.live)

    def undone_by(self, mark: Generation) -> list[str]:
        """The replays since; none where nothing behind the mark was shown: the table stays as it is."""
        return self.live.replays[len(mark.replays) :] if self._shown_behind(mark) else []

    def _shown_behind(self, mark: Generation) -> bool:
        """Whether readers see a batch behind the mark, so that the table is taken back with it."""
        return self.live.visible >= len(mark.batches)

    def go_back(self, mark: Generation) -> None:
        """What was read behind the mark comes again; what was decided since stays decided."""
        now, stays = self.live, not self._shown_behind(mark)
        decided, self.live = now.decided, copy.deepcopy(mark)
        if stays:
            self.live.table, self.live.visible = now.table, now.visible
            self.live.replays, self.live.brought = now.replays, now.brought
            self.live.quarantine |= {each: "replayed" for each in now.brought if each in self.live.quarantine}
        for each in list(self.live.queue):
            if each.held and (choice := decided.get(each.batches[0])):
                self.live.queue.remove(each)
                if choice == "shown":
                    self._show(each)

    # Rebuilds

    def rebuild(self, version: int) -> None:
        shadow = self.shadow or Generation(version)
        self._take(shadow, [each for each in self.landed if each not in shadow.read | self.lost])
        shadow.table = self._merged(shadow.table, shadow.rows)
        shadow.rows, shadow.staged = Counter(), []
        self.shadow = shadow

    def swap(self) -> None:
        assert self.shadow is not None
        self.before, self.live, self.shadow = self.live, self.shadow, None
        self.live.visible = len(self.live.batches) - 1

    def roll_back(self) -> None:
        assert self.before is not None
        self.live, self.before = self.before, None


@dataclass
class Windows(Model):
    """Counts per hour: a window is in the table once the watermark has passed its end.

    Attributes:
        offset: where windows begin, in hours after the full one.
        by_end: a window goes by its end.
        hours: how long a window is; one begins every hour.
        late: the watermark one batch before: Spark drops by it what comes late.
        planned: Spark has noted what a batch reads, and has not committed it.
    """

    offset: float = 0.0
    by_end: bool = False
    hours: int = 1
    state: Counter[datetime] = field(default_factory=Counter)
    watermark: datetime | None = None
    late: datetime | None = None
    planned: bool = False

    @property
    def reads_at(self) -> str:
        # What a batch moves the watermark to depends on where it ends.
        return "query.start"

    def starts_of(self, at: datetime) -> list[datetime]:
        """Of the windows that a time lies in."""
        moved = at - timedelta(hours=self.offset)
        last = moved.replace(minute=0, second=0, microsecond=0) + timedelta(hours=self.offset)
        return [last - before * HOUR for before in range(self.hours)]

    def end_of(self, start: datetime) -> datetime:
        return start + self.hours * HOUR

    def time_of(self, start: datetime) -> datetime:
        """What the time column says of a window."""
        return self.end_of(start) if self.by_end else start

    def take(self, *, cut_off: bool = False) -> None:
        """What was planned, then one batch of all that waits, then one without data; or the first of them."""
        if cut_off and self.planned:
            return
        self.planned = cut_off and bool(self.unread)
        if self.unread:
            self._read([self.landed[each] for each in self.unread])
        if not cut_off:
            self.late = self.watermark

    def _read(self, rows: list[Row]) -> None:
        times = [row.at for row in rows if row.at is not None and row.passes(self.fixed)]
        starts = [start for at in times for start in self.starts_of(at)]
        self.state.update(start for start in starts if self.late is None or self.end_of(start) > self.late)
        self.late = self.watermark
        if times:
            self.watermark = max([*times, *([self.watermark] if self.watermark else [])])
        self.live.batches.append([row.id for row in rows])

    def drain(self, judge: bool = True, publish: bool = True) -> None:
        """Closed windows go."""
        if not judge:
            return
        self.take()
        if not publish or self.watermark is None:
            return
        for start in [each for each in self.state if self.end_of(each) <= self.watermark]:
            self.live.table[self.key(start), self.state.pop(start)] += 1
        self.live.visible = len(self.live.batches) - 1

    def key(self, start: datetime) -> int:
        """A window as a number: minutes since 1970 of what the time column says."""
        return int(self.time_of(start).timestamp() // 60)

    def replay(self, start: datetime, end: datetime, visible: int) -> None:
        seen = self.live.batches[: visible + 1]
        rows = [self.landed[each] for batch in seen for each in batch]
        times = [row.at for row in rows if row.at is not None and row.passes(self.fixed)]
        counts = Counter(window for at in times for window in self.starts_of(at))
        first, behind = int(start.timestamp() // 60), int(end.timestamp() // 60)
        kept = {key: n for key, n in self.live.table.items() if not first <= key[0] < behind}
        new = {(self.key(each), n): 1 for each, n in counts.items() if start <= self.time_of(each) < end}
        self.live.table = Counter({**kept, **new})
