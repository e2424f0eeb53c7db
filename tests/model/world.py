"""A project and the model of it side by side: every rule is done to both, and then they are compared."""

from __future__ import annotations

import traceback
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from tests.model.actions import Ended, Moment, commands_of
from tests.model.generations import Generations
from tests.model.looks import Wrong, equal, files_named, rows
from tests.model.model import Kind, Row
from tests.model.others import Others
from tests.model.places import OF_A_DRAIN, ORDER, comes_after
from tests.model.project import FIRST, READ, TABLES, record
from tests.model.sinks import backup_of, id_of
from tests.support import older_copy

Step = tuple[Any, ...]
"""A rule's name, and what it is given."""


class World(Generations, Others):
    """Rules. Each is done to the project and, as far as it came, to the model."""

    def land(self, *rows: tuple[Kind, float | None]) -> None:
        """One file; of each row its kind, and its hour since 2024-01-01 (None: no event time)."""
        made, lines = [], []
        for kind, hour in rows:
            at = None if hour is None or kind == "null" else FIRST + timedelta(hours=hour)
            row = Row(self.next_id, at, kind)
            self.next_id += 1
            made.append(row)
            lines.append(record(row))
        self.next_file += 1
        folder = self.actions.storage / "landing/events"
        path = folder / f"{self.next_file:04}.json"
        aside = path.with_name(f".{path.name}")
        aside.write_bytes(b"".join(line + b"\n" for line in lines))
        aside.rename(path)
        self.model.land(made)

    def drain(
        self, die: tuple[Any, ...] | None = None, then: Callable[[], None] | None = None, name: str = "out"
    ) -> Ended:
        moment = self._moment(die, then)
        ended = self.actions.drain(moment)
        if ended.died:
            assert moment is not None
            self._died_in_a_drain(moment)
        elif ended.id in ("", "audit.fail", "slice.overdue"):
            self._settle_pending()
            may_fail = self._drained()
            self._settled()
            if ended.id == "audit.fail" and not may_fail and not self.model.holds:
                raise Wrong(f"nothing of this can fail an audit: {ended}")
        else:
            return self._refused(ended, "drain")
        return ended

    def _settled(self) -> None:
        self.clean, self.begun, self.shown_open, self.begun_under = True, False, False, None
        self.planned = set()

    def lose(self) -> None:
        """The newest file that no batch has read is gone; one that is planned is taken out of its batch."""
        number = max(n for n, file in enumerate(self.model.files, 1) if set(file) & set(self.model.unread))
        (self.actions.storage / f"landing/events/{number:04}.json").unlink()
        lost = set(self.model.files[number - 1])
        self.model.lost |= lost
        if not lost & self.planned:
            return
        ended = self.actions.drain()
        if ended.id != "source.gone" or ended.error is None:
            raise Wrong(f"a file of a planned batch is gone, and a run says: {ended}")
        out = self.actions.typed(commands_of(ended.error)[0])
        if out.error is not None:
            raise Wrong(f"it is not taken out of its batch: {out}")

    def _moment(self, die: tuple[Any, ...] | None, then: Callable[[], None] | None) -> Moment | None:
        """None for a death of a batch that was begun and of which it matters how far it has come."""
        if not die or (then is None and self.begun_under is not None):
            return None
        return Moment(*die, then=then)

    def _drained(self) -> bool:
        """Whether the audit of what was read now may fail."""
        if self.has_windows:
            self.model.drain()
            return False
        if self.begun_under not in (None, self.model.fixed):
            self.model.finish(bool(self.begun_under), self.shown_open)
            return not self.model.judged_all
        self.model.take()
        may_fail = not self.model.judged_all
        self.model.drain()
        return may_fail

    def _died_in_a_drain(self, moment: Moment) -> None:
        self.clean = False
        at, shown = ORDER.index(moment.step), self.sink.shown_at
        if self.begun:
            first = next((each for each in self.model.files if set(each) & set(self.model.unread)), [])
            self.planned = set(first if self.model.one_file else self.model.unread) | self.planned
        ends = (moment.when, moment.step) == ("before", "batch.end")
        if at <= ORDER.index("batch.end") and not ends and self.sink.fixes(moment, self.model.at_once):
            self.begun_under = self.model.fixed
        self.begun = at <= ORDER.index("batch.end") and (self.begun or at > ORDER.index("query.start"))
        if self.model.at_once and ORDER.index(shown) <= at <= ORDER.index("batch.end"):
            # The last of these steps is around all the others of a batch.
            if comes_after(moment, shown) and not ends:
                self.model.take_first()
                self.shown_open = True
            return
        if ORDER.index(moment.step) > ORDER.index(self.model.reads_at):
            self.model.take(cut_off=ORDER.index(moment.step) <= ORDER.index("batch.end"))
        self.model.drain(
            judge=comes_after(moment, "verdict.note"), publish=comes_after(moment, "publish.commit")
        )

    def backfill(
        self,
        start: float,
        end: float,
        die: tuple[str, str] | None = None,
        then: Callable[[], None] | None = None,
    ) -> Ended:
        """Hours since 2024-01-01."""
        first, last = FIRST + timedelta(hours=start), FIRST + timedelta(hours=end)
        moment = Moment(*die, then=then) if die else None
        # A drain that publishes meanwhile shows rows that this replay does not know.
        begun = self.model.live.visible
        ended = self.actions.backfill(first.isoformat(), last.isoformat(), moment)
        visible = min(begun, self.model.live.visible)
        if ended.died:
            assert moment is not None
            if (moment.when, moment.step) == ("after", "replay.commit"):
                self.model.replay(first, last, visible)
            return ended
        if ended.error is None:
            self.model.replay(first, last, visible)
            return ended
        if ended.id == "audit.fail":
            made = self.model.recomputed(first, last, visible)
            assert any(self.model.landed[each].kind == "marker" for each in made), str(ended)
            return ended
        states = set(self.model.live.quarantine.values())
        if ended.id == "replay.decided" and not states & {"replayed", "dropped"}:
            raise Wrong(f"nothing was decided about any row: {ended.error}")
        return self._refused(ended, "backfill")

    def fix_rule(self, fixed: bool = True) -> None:
        self.model.fixed = fixed
        self._write_quality()

    def toggle(self) -> None:
        """`publish:`, from audited to direct or back."""
        self.model.direct = not self.model.direct
        self._write(self.model.live.version)

    def drop(self) -> Ended:
        """All rows of the quarantine that are open."""
        ended = self.actions.command("quarantine", "drop", "out", "--why", "a test", "--yes")
        if ended.error is None:
            self.model.drop()
            return ended
        return self._refused(ended, "drop")

    def rename(self) -> Ended:
        """To another name and back again."""
        folders = self.root / "include/pipelines"
        spec = (folders / "out/pipeline.yaml").read_text()
        # The sink goes on by the first name.
        texts = (("out", "other", f"{spec}first_name: out\n"), ("other", "out", spec))
        for old, new, text in texts:
            (folders / old).rename(folders / new)
            (folders / new / "pipeline.yaml").write_text(text)
            ended = self.actions.command("rename", old, new, "--why", "a test")
            if ended.error is not None:
                (folders / new).rename(folders / "out")
                (folders / "out/pipeline.yaml").write_text(spec)
                return self._refused(ended, "rename")
        return ended

    def put_back(self, what: str) -> None:
        """An older copy of a thing, then the newer again: a run over the older one says so."""
        storage = self.actions.storage
        copy_of = {
            "sink": lambda: self.sink.backup(storage),
            "quarantine": lambda: backup_of(storage / "quarantine/out"),
            "metastore": lambda: older_copy.copy_of(self.actions.sandbox, f"{uuid.uuid4().hex}.db"),
        }[what]
        kinds: tuple[Kind, ...] = ("ok", "bad")
        back = copy_of()
        self.land(*((kind, None) for kind in kinds))
        self.drain()
        newer = copy_of()
        self.land(("ok", None))
        back()
        self.actions.forget_tables()
        ended = self.actions.drain()
        if ended.error is None or ended.id == "audit.fail":
            raise Wrong(f"an older copy of the {what} is put back, and the next run says nothing: {ended}")
        newer()
        self.actions.forget_tables()

    def start_over(self, empty: bool) -> Ended:
        """The pipeline removed and its folder back: all is read again; `empty`: into the table as it is."""
        folder = self.root / "include/pipelines/out"
        folder.rename(self.root / "aside")
        ended = self.actions.command("remove", "out", "--yes")
        (self.root / "aside").rename(folder)
        if ended.error is not None:
            return self._refused(ended, "remove")
        if empty:
            self.sink.empty(self.actions.storage)
            self.actions.forget_tables()
        self.model.start_over()
        self.marks.clear()
        self.snapshot = None
        return ended

    def patch(self) -> Ended:
        """The open rows of the quarantine come through with another value."""
        return self.replay_quarantine(patched=True)

    def replay_quarantine(
        self,
        die: tuple[Any, ...] | None = None,
        then: Callable[[], None] | None = None,
        patched: bool = False,
    ) -> Ended:
        moment = self._moment(die, then)
        ended = self.actions.replay_quarantine(("n = 1",) if patched else (), moment)
        if ended.died:
            assert moment is not None
            self.clean = False
            if comes_after(moment, "replay.note"):
                self.model.stage_passing(patched)
            if moment.step in OF_A_DRAIN and comes_after(moment, "replay.note"):
                self._died_in_a_drain(moment)
        elif ended.id in ("", "audit.fail", "slice.overdue"):
            self.clean = True
            if self.model.passing(patched):
                self._settled()
            self.model.replay_quarantine(patched)
        else:
            return self._refused(ended, "replay_quarantine")
        return ended

    def decide(self, choice: str, batch: int | None = None) -> Ended:
        words = ["--batch", str(batch)] if batch is not None else []
        ended = self.actions.command(choice, "out", "--why", "a test", *words)
        if ended.error is None:
            (self.model.release if choice == "release" else self.model.discard)()
            return ended
        if ended.id == "slice.none-held" and self.model.holds and self.clean:
            raise Wrong(f"a slice is held, and the command says: {ended.error}")
        return self._refused(ended, "decide")

    # Two actors

    def do(self, name: str, *given: Any) -> Ended | None:
        """A rule, and a note of how it ended."""
        ended: Ended | None = getattr(self, name)(*given)
        if ended is not None and "amid" not in name:
            self.ends[f"{name}: {ended.word}"] += 1
        return ended

    def amid(self, rule: Step, place: tuple[str, str], *others: Step, must: bool = True) -> Ended | None:
        """While one actor is at a place in a rule, others do theirs, to their ends."""
        struck: list[tuple[str, str]] = []
        found: list[Wrong] = []

        def then() -> None:
            struck.append(place)
            self.nested = True
            try:
                for name, *given in others:
                    ended = self.do(name, *given)
                    self.done.append(f"    amid it: {name}{tuple(given)} {ended}")
            except Wrong as wrong:
                found.append(wrong)
            finally:
                self.nested = False

        name, *given = rule
        self.slept = False
        ended = self.do(name, *given, place, then)
        self.slept = False
        if found:
            raise found[0]
        if not struck and must:
            raise Wrong(f"{rule} never comes to {place}")
        return ended

    def perhaps_amid(self, rule: Step, place: tuple[str, str], *others: Step) -> Ended | None:
        """The same where the rule may not come so far."""
        return self.amid(rule, place, *others, must=False)

    def is_refused(self, rule: Step) -> None:
        """A change that would make wrong rows is said so."""
        name, *given = rule
        try:
            getattr(self, name)(*given)
        except Wrong as wrong:
            if "is refused" in str(wrong):
                return
            raise
        raise Wrong(f"{rule} is not refused")

    # What must be true after each

    def check(self) -> None:
        try:
            self.check_files()
            self.check_rows()
            self.check_quarantine()
            self.check_counts()
            self.check_reader()
        except Wrong:
            raise
        except Exception as error:
            raise Wrong(f"a look at the project failed: {error!r}\n{traceback.format_exc()}") from error

    def check_rows(self) -> None:
        """While something is cut off, the table is as before or as after it."""
        found = self.sink.rows(self.actions.storage)
        other = {"approve": self.model.shadow, "rollback": self.model.before}.get(self.pending)
        if other is not None and found == other.table:
            return
        if self.pending in ("rewind", "restore") and found == self._behind(self.back_to[2]).live.table:
            return
        equal("rows of the table", found, self.model.live.table)

    def check_quarantine(self) -> None:
        """Each row that was set aside is there once, in the state that it has come to."""
        if not (self.actions.storage / "quarantine/out/_delta_log").exists():
            return
        found = self.actions.quarantine()
        if self.clean and self.compares_quarantine:
            states = Counter((id_of(str(row["payload"])), str(row["state"])) for row in found)
            equal("rows of the quarantine", states, Counter(self.model.live.quarantine.items()))

    def check_counts(self) -> None:
        for run in self.actions.runs():
            if not run.counts.balanced:
                raise Wrong(
                    f"counts of run {run.run_id} ({run.kind}, {run.state}) do not balance: {run.counts}"
                )

    def check_reader(self) -> None:
        if self.model.delivered is not None and not self.tainted:
            found = Counter(each for each, _ in rows(self.actions.storage / READ).elements())
            equal("rows of the reader", found, self.model.delivered)

    def check_files(self) -> None:
        """Every file that a version within its retention names is there."""
        for path in TABLES:
            folder = self.actions.storage / path
            for version, files in files_named(folder).items():
                if version < self.kept_from.get(path, 0):
                    continue
                gone = sorted(each for each in files if not (folder / each).exists())
                if gone:
                    raise Wrong(f"version {version} of {path} names files that are gone: {gone}")

    def check_ways_out(self) -> None:
        """Whatever the state: by what the errors name one comes to a drain that succeeds."""
        tried: list[str] = []
        for _ in range(8):
            ended = self.actions.drain()
            if ended.error is None:
                return
            if ended.id == "audit.fail":
                continue
            commands = commands_of(ended.error)
            tried.append(f"{ended.error}")
            if not commands:
                raise Wrong(f"no command leads out of: {ended.error}\n{tried}")
            out = self.actions.typed(commands[0])
            tried.append(f"typed `{commands[0]}`: {out}")
        raise Wrong("no way out:\n" + "\n".join(tried))


def play(world: World, steps: Sequence[Step]) -> None:
    """A script: after each of its steps all that must be true is looked at."""
    for name, *given in steps:
        world.done.append(f"{name}{tuple(given)}")
        try:
            world.done.append(f"  {world.do(name, *given)}")
            world.check()
        except Exception as error:
            world.failed = True
            world.done.append(f"  {error}")
            raise
