"""A project and the model of it side by side: every rule is done to both, and then they are compared."""

from __future__ import annotations

import json
import shutil
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from tests.model.actions import Actions, Ended, Moment, commands_of
from tests.model.model import Kind, Model, Row, Windows

FIRST = datetime(2024, 1, 1, tzinfo=UTC)
OUT, READ = "tables/out", "tables/read"
PROJECT = "held: 30 minutes\nupkeep: {vacuum: 3 hours, records: 3 hours}\n"
SPEC = """
sources:
  events:
    format: json
    path: landing/events
    schema: events.ddl
    watermark: {column: at, delay: 0 seconds}
transform: transform.sql
sink: {format: delta, path: tables/out, schema: out.ddl, time_column: at SINK}
state: {partitions: 1}
replay: {interval: 1 day}
"""
READER = """
sources:
  made: {format: delta, path: tables/out, options: {skipChangeCommits: true}}
transform: transform.sql
sink: {format: delta, path: tables/read, schema: out.ddl}
state: {partitions: 1}
"""
EVENTS = "id BIGINT, at TIMESTAMP, k STRING, n INT"
COLUMNS = "id BIGINT, at TIMESTAMP, k STRING, n INT, v INT"
TRANSFORM = "SELECT id, at, k, n, {version} AS v FROM events"
DAY = "SELECT id, at, k, n, {version} AS v, CAST(at AS DATE) AS day FROM events"
WINDOWS = {
    "windows": "SELECT window.start AS at, count(*) AS n FROM events GROUP BY window(at, '1 hour')",
    "windows by their end": "SELECT window.end AS at, count(*) AS n FROM events"
    " GROUP BY window(at, '1 hour')",
    "windows with an offset": "SELECT window.start AS at, count(*) AS n FROM events"
    " GROUP BY window(at, '1 hour', '1 hour', '15 minutes')",
}
COPIED = """
sources:
  raw: {format: delta, path: landing/raw}
transform: transform.sql
sink: {format: delta, path: tables/copied, schema: out.ddl}
state: {partitions: 1}
"""
QUALITY = """
rules: [{{name: small, check: "n < {bound}", on_fail: quarantine}}]
expectations:
  - {{type: expect_column_values_to_not_be_in_set, kwargs: {{column: k, value_set: [marker]}}}}
"""
NUMBERS: dict[str, int] = {"bad": 95, "worst": 150}

# Where a drain that dies has judged its slice, and where its rows are visible.
_DRAIN = (
    "lease.take",
    "run.open",
    "checkpoint.note",
    "past.settle",
    "query.start",
    "batch.files",
    "batch.stage",
    "batch.reject",
    "batch.note",
    "batch.end",
    "commits.note",
    "quarantine.publish",
    "verdict.note",
    "publish.commit",
    "publish.note",
    "run.close",
)
_ORDER = (*_DRAIN[:2], "replay.judge", "replay.note", "replay.plan", *_DRAIN[2:])
DEATHS = tuple(
    (when, step)
    for step in _DRAIN
    for when in ("before", "after")
    if (when, step) != ("after", "query.start")
)


def _comes_after(moment: Moment, step: str) -> bool:
    """Whether what the step makes true is true when an actor dies at the moment."""
    mine, other = _ORDER.index(moment.step), _ORDER.index(step)
    return mine > other or (mine == other and moment.when == "after")


REFUSALS: dict[str, set[str]] = {
    "drain": set(),
    "backfill": {"replay.open", "replay.nothing-visible", "replay.waiting", "replay.reach"},
    "replay_quarantine": {"quarantine.none", "quarantine.unfinished"},
    "decide": {"slice.none-held"},
    "rewind": {"sink.between", "sink.behind", "checkpoint.not-kept"},
    "snapshot": {"rebuild.unfinished", "checkpoint.nothing"},
    "restore": {"sink.between", "sink.behind", "checkpoint.no-snapshot"},
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
UNFINISHED = {"rebuild.unfinished", "metastore.behind", "checkpoint.unfinished", "checkpoint.restoring"}
"""What may refuse any rule while something is cut off."""


OF_A_REPLAY = tuple((when, f"replay.{step}") for step in ("stage", "commit") for when in ("before", "after"))
OF_THE_QUARANTINE = tuple(
    (when, f"replay.{step}") for step in ("judge", "note", "plan") for when in ("before", "after")
)
OF_A_SWAP = tuple((w, f"rebuild.{step}") for step in ("begin", "swap", "note") for w in ("before", "after"))
OF_A_ROLL_BACK = tuple((w, f"rollback.{s}") for s in ("begin", "commit", "note") for w in ("before", "after"))


class Wrong(AssertionError):
    """The project is not what the model says."""


@dataclass
class World:
    """`done`: what was done so far, to be read and done again."""

    root: Path
    spark: SparkSession
    kind: str = "append"
    store_url: str = "sqlite:///metastore.db"
    actions: Actions = field(init=False)
    model: Model = field(init=False)
    done: list[str] = field(default_factory=list)
    refusals: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.actions = Actions(self.root, self.spark, PROJECT, self.store_url)
        self.model = Model(ordered=self.kind != "unordered", keyed=self.kind == "update")
        self.columns, self.transform = COLUMNS, TRANSFORM
        if self.kind in WINDOWS:
            self.columns, self.transform = "at TIMESTAMP, n BIGINT", WINDOWS[self.kind]
            self.model = Windows(offset=0.25 * ("offset" in self.kind), by_end="end" in self.kind)
        self.keys, self.tainted = "[at]", False
        if self.kind == "day":
            self.columns, self.transform = f"{COLUMNS}, day DATE", DAY
        self.next_id, self.next_file = 0, 0
        self.kept_from: dict[str, int] = {}
        self.marks: list[tuple[int, Any]] = []
        self.snapshot: Any = None
        self.pending, self.clean, self.nested, self.in_folder = "", True, False, 1
        self.failed = False
        self.reads = False
        self.delivered: Counter[int] = Counter()
        self.undelivered = False
        (self.actions.storage / "landing/events").mkdir(parents=True)
        self._write(1)

    # The pipeline

    def _write(self, version: int, folder: str = "out") -> None:
        target = self.root / "include/pipelines" / folder
        target.mkdir(parents=True, exist_ok=True)
        sink = {"unordered": ", ordered: false", "update": f", mode: update, keys: {self.keys}"}
        spec = SPEC.replace(" SINK", sink.get(self.kind, ""))
        files = {
            "pipeline.yaml": spec.replace("time_column: at", "time_column: day")
            if self.kind == "day"
            else spec,
            "events.ddl": EVENTS,
            "out.ddl": self.columns,
            "transform.sql": self.transform.format(version=version),
        }
        for name, text in files.items():
            (target / name).write_text(text)
        self._write_quality()

    def _write_quality(self) -> None:
        text = QUALITY.format(bound=100 if self.model.mended else 90)
        if self.kind in WINDOWS:
            text = text.partition("expectations:")[0]
        for folder in ("out", "out/next"):
            if (self.root / "include/pipelines" / folder).exists():
                (self.root / "include/pipelines" / folder / "quality.yaml").write_text(text)

    # Rules. Each is done to the project and, as far as it came, to the model.

    def land(self, *rows: tuple[Kind, float | None]) -> None:
        """One file; of each row its kind, and its hour since 2024-01-01 (None: no event time)."""
        made, lines = [], []
        for kind, hour in rows:
            at = None if hour is None or kind == "null" else FIRST + timedelta(hours=hour)
            row = Row(self.next_id, at, kind)
            self.next_id += 1
            made.append(row)
            lines.append(_record(row))
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
        moment = Moment(*die, then=then) if die else None
        ended = self.actions.drain(moment)
        if ended.died:
            assert moment is not None
            self._died_in_a_drain(moment)
        elif ended.id in ("", "audit.fail", "slice.overdue"):
            self._settle_pending()
            self.model.drain()
            self.clean = True
            if ended.id == "audit.fail" and not self.model.holds:
                raise Wrong(f"nothing of this can fail an audit: {ended}")
        else:
            return self._refused(ended, "drain")
        return ended

    def _died_in_a_drain(self, moment: Moment) -> None:
        self.clean = False
        if _ORDER.index(moment.step) > _ORDER.index("batch.end"):
            self.model.take()
        self.model.drain(
            judge=_comes_after(moment, "verdict.note"), publish=_comes_after(moment, "publish.commit")
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
        ended = self.actions.backfill(first.isoformat(), last.isoformat(), moment)
        if ended.died:
            assert moment is not None
            if (moment.when, moment.step) == ("after", "replay.commit"):
                self.model.replay(first, last)
            return ended
        if ended.error is None:
            self.model.replay(first, last)
            return ended
        if ended.id == "audit.fail":
            made = self.model.recomputed(first, last)
            assert any(self.model.landed[each].kind == "marker" for each in made), str(ended)
            return ended
        return self._refused(ended, "backfill")

    def mend_rule(self, mended: bool = True) -> None:
        self.model.mended = mended
        self._write_quality()

    def replay_quarantine(
        self, die: tuple[Any, ...] | None = None, then: Callable[[], None] | None = None
    ) -> Ended:
        moment = Moment(*die, then=then) if die else None
        ended = self.actions.replay_quarantine(moment=moment)
        if ended.died:
            assert moment is not None
            self.clean = False
            if _comes_after(moment, "replay.note"):
                self.model.stage_passing()
            if moment.step in _DRAIN and _comes_after(moment, "replay.note"):
                self._died_in_a_drain(moment)
        elif ended.id in ("", "audit.fail", "slice.overdue"):
            self.clean = True
            self.model.replay_quarantine()
        else:
            return self._refused(ended, "replay_quarantine")
        return ended

    def decide(self, choice: str, batch: int | None = None) -> Ended:
        words = ["--batch", str(batch)] if batch is not None else []
        ended = self.actions.command(choice, "out", "--why", "a test", *words)
        if ended.error is None:
            (self.model.release if choice == "release" else self.model.discard)()
            return ended
        return self._refused(ended, "decide")

    def mark(self) -> None:
        """A place to go back to."""
        if self.clean and not self.pending:
            self.marks.append((self.actions.last_batch(), self.model.mark()))

    def rewind(self, number: int = -1, die: tuple[str, str] | None = None) -> Ended:
        batch, mark = self.marks[number]
        if batch < 0:
            return Ended()
        ended = self.actions.command(
            "checkpoint", "rewind", "out", "--to", str(batch), "--sink", moment=Moment(*die) if die else None
        )
        if ended.died:
            self.pending = "rewind"
            return ended
        if ended.error is None:
            self._gone_back(mark, ended)
            self.pending = ""
            self.marks = [each for each in self.marks if each[0] <= batch]
            return ended
        return self._refused(ended, "rewind")

    def take_snapshot(self) -> Ended:
        ended = self.actions.command("checkpoint", "snapshot", "out")
        if ended.error is None:
            self.snapshot = self.model.mark()
            return ended
        return self._refused(ended, "snapshot")

    def restore(self) -> Ended:
        ended = self.actions.command("checkpoint", "restore", "out", "latest", "--sink")
        if ended.error is None:
            self._gone_back(self.snapshot, ended)
            self.marks.clear()
            return ended
        return self._refused(ended, "restore")

    def _gone_back(self, mark: Any, ended: Ended) -> None:
        if len(mark.batches) == len(self.model.live.batches):
            # Nothing came behind it, so nothing is taken back.
            return
        undone = self.model.live.replays[len(mark.replays) :]
        notices = json.dumps([run.notices for run in self.actions.runs()[:1]])
        if undone and "replay" not in ended.said + notices:
            raise Wrong(f"it is not said that the replays {undone} are undone: {ended}")
        self.model.go_back(mark)
        # A stream that has read what is taken back reads it again when it comes again.
        self.tainted = self.tainted or self.reads

    def rebuild(self, die: tuple[Any, ...] | None = None, then: Callable[[], None] | None = None) -> Ended:
        version = self.model.shadow.version if self.model.shadow else self.model.live.version + 1
        if self.model.shadow is None:
            self._promote()
            self._write(version, "out/next")
        ended = self.actions.rebuild(Moment(*die, then=then) if die else None)
        if ended.id == "audit.fail":
            self.model.rebuild(version)
            assert self.model.shadow is not None
            self.model.shadow.failed = True
        elif ended.error is None and not ended.died:
            self.model.rebuild(version)
            return ended
        return self._refused(ended, "rebuild")

    def _promote(self) -> None:
        """The version that is in use moves from `next/` to the folder."""
        if self.model.live.version > 1 and self.model.live.version != self.in_folder:
            self._write(self.model.live.version)
            self.in_folder = self.model.live.version
            self.model.before = None

    def approve(self, die: tuple[Any, ...] | None = None) -> Ended:
        return self._end_rebuild("approve", die, self._swapped)

    def _swapped(self) -> None:
        assert self.model.shadow is not None
        if self.model.shadow.failed:
            raise Wrong("a rebuild that failed its audit was swapped in")
        self.model.swap()
        self._new_generation()

    def roll_back(self, die: tuple[Any, ...] | None = None) -> Ended:
        return self._end_rebuild("rollback", die, self._rolled_back)

    def _rolled_back(self) -> None:
        self.model.roll_back()
        self._new_generation()

    def give_up(self) -> Ended:
        def given_up() -> None:
            self.model.shadow = None

        return self._end_rebuild("discard", None, given_up)

    def _end_rebuild(self, choice: str, die: tuple[Any, ...] | None, done: Callable[[], None]) -> Ended:
        moment = Moment(*die) if die else None
        ended = self.actions.command("rebuild", choice, "out", "--why", "a test", moment=moment)
        if ended.died:
            self.pending = choice
        elif ended.error is None:
            self.pending = ""
            done()
        else:
            return self._refused(ended, choice)
        return ended

    def finish(self) -> Ended:
        """What was cut off, again."""
        again = {"approve": self.approve, "rollback": self.roll_back, "rewind": self.rewind}[self.pending]
        ended = again()
        if ended.error is None:
            self.pending = ""
        return ended

    def _settle_pending(self) -> None:
        """A drain goes on where nothing had begun, or all had ended, when an actor died."""
        if self.pending in ("approve", "rollback"):
            other = self.model.shadow if self.pending == "approve" else self.model.before
            assert other is not None
            found = _rows(self.actions.storage / OUT)
            if found and {version for _, version in found} == {other.version}:
                (self._swapped if self.pending == "approve" else self._rolled_back)()
        self.pending = ""

    def _new_generation(self) -> None:
        self.marks.clear()
        self.snapshot = None

    def upkeep(self, hours: float = 4) -> Ended:
        """After some hours; files stay for three."""
        # What a rewind would need is only kept for so long.
        self.marks.clear()
        ended = self.actions.upkeep(timedelta(hours=hours))
        if hours > 3:
            self.kept_from = {path: _version(self.actions.storage / path) for path in (OUT, READ)}
        return self._refused(ended, "upkeep") if ended.error is not None else ended

    def read_on(self) -> Ended:
        """The pipeline downstream."""
        if not self.reads:
            self.actions.workspace.pipeline(
                "reader", READER, out_ddl=COLUMNS, transform_sql="SELECT * FROM made"
            )
            self.reads = True
        ended = self.actions.drain(name="reader")
        if ended.error is None:
            self.model.delivered = Counter(self.model.appended)
            return ended
        return self._refused(ended, "read_on")

    def add_column(self) -> None:
        """In the middle of the columns."""
        self.columns = COLUMNS.replace("k STRING", "extra INT, k STRING")
        self.transform = TRANSFORM.replace("at, k", "at, 7 AS extra, k")
        self._write(self.model.live.version)

    def change_keys(self, keys: str) -> None:
        self.keys = keys
        self._write(self.model.live.version)

    def vacuum_by_hand(self) -> None:
        """As somebody does who wants his disk back."""
        table = DeltaTable(str(self.actions.storage / OUT))
        table.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
        self.kept_from[OUT] = table.version()

    # A pipeline over a table of somebody else's

    def deliver(self, *ids: int) -> None:
        """Rows for it, each call a version of the table."""
        import pyarrow as pa

        if not self.delivered:
            self.actions.workspace.pipeline(
                "copied", COPIED, out_ddl="id BIGINT", transform_sql="SELECT id FROM raw"
            )
        self.delivered.update(ids)
        self.undelivered = True
        rows = pa.table({"id": pa.array(ids, pa.int64())})
        write_deltalake(str(self.actions.storage / "landing/raw"), rows, mode="append")

    def remake_source(self) -> None:
        """Deleted and made again, without a row."""
        shutil.rmtree(self.actions.storage / "landing/raw")
        self.actions.forget_tables()

    def copy(self) -> Ended:
        ended = self.actions.drain(name="copied")
        if ended.error is None and self.undelivered and not ended.ran:
            raise Wrong("rows of a table that was made again are hidden: the run says that nothing is new")
        if ended.error is None:
            self.undelivered = False
            rows = DeltaTable(str(self.actions.storage / "tables/copied")).to_pyarrow_table()
            found = Counter(rows.column("id").to_pylist())
            _equal("rows of the copy", found, self.delivered)
            return ended
        return self._refused(ended, "copy")

    def read_once(self) -> None:
        """Downstream every row comes once, also behind a rewind; or somebody was told."""
        self.tainted = False
        self.read_on()

    def _refused(self, ended: Ended, rule: str) -> Ended:
        if ended.error is not None:
            self.refusals[f"{rule}: {ended.id}"] += 1
            busy = self.nested and ended.id in ("lease.held", "metastore.locked")
            unfinished = self.pending and ended.id in UNFINISHED
            if (
                not busy
                and not unfinished
                and not any(
                    ended.id == each or (each.endswith(".") and ended.id.startswith(each))
                    for each in REFUSALS[rule]
                )
            ):
                raise Wrong(f"{rule} is refused for no reason: {ended.error}")
        return ended

    # Two actors

    def amid(self, rule: Step, place: tuple[str, str], *others: Step, must: bool = True) -> None:
        """While one actor is at a place in a rule, others do theirs, to their ends."""
        struck: list[tuple[str, str]] = []
        found: list[Wrong] = []

        def then() -> None:
            struck.append(place)
            self.nested = True
            try:
                for name, *given in others:
                    ended = getattr(self, name)(*given)
                    self.done.append(f"    amid it: {name}{tuple(given)} {ended}")
            except Wrong as wrong:
                found.append(wrong)
            finally:
                self.nested = False

        name, *given = rule
        getattr(self, name)(*given, place, then)
        if found:
            raise found[0]
        if not struck and must:
            raise Wrong(f"{rule} never comes to {place}")

    def perhaps_amid(self, rule: Step, place: tuple[str, str], *others: Step) -> None:
        """The same where the rule may not come so far."""
        self.amid(rule, place, *others, must=False)

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
        found = _rows(self.actions.storage / OUT)
        other = {"approve": self.model.shadow, "rollback": self.model.before}.get(self.pending)
        if other is not None and found == other.table:
            return
        if self.pending == "rewind" and found == self.marks[-1][1].table:
            return
        _equal("rows of the table", found, self.model.live.table)

    def check_quarantine(self) -> None:
        if not (self.actions.storage / "quarantine/out/_delta_log").exists():
            return
        self.actions.quarantine()

    def check_counts(self) -> None:
        for run in self.actions.runs():
            if not run.counts.balanced:
                raise Wrong(
                    f"counts of run {run.run_id} ({run.kind}, {run.state}) do not balance: {run.counts}"
                )

    def check_reader(self) -> None:
        if self.reads and not self.tainted:
            found = Counter(each for each, _ in _rows(self.actions.storage / READ).elements())
            _equal("rows of the reader", found, self.model.delivered)

    def check_files(self) -> None:
        """Every file that a version within its retention names is there."""
        for path in (OUT, "quarantine/out", READ):
            folder = self.actions.storage / path
            for version, files in self._named(folder).items():
                if version < self.kept_from.get(path, 0):
                    continue
                gone = sorted(each for each in files if not (folder / each).exists())
                if gone:
                    raise Wrong(f"version {version} of {path} names files that are gone: {gone}")

    def _named(self, folder: Path) -> dict[int, set[str]]:
        found: dict[int, set[str]] = {}
        files: set[str] = set()
        for commit in sorted((folder / "_delta_log").glob("*.json")):
            for line in commit.read_text().splitlines():
                action = json.loads(line)
                if "add" in action:
                    files = files | {unquote(action["add"]["path"])}
                elif "remove" in action:
                    files = files - {unquote(action["remove"]["path"])}
            found[int(commit.stem)] = files
        return found

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


def _record(row: Row) -> bytes:
    if row.kind == "malformed":
        return f'{{"id": {row.id}, "at": broken'.encode()
    if row.kind == "not-utf8":
        return f'{{"id": {row.id}, "at": broken '.encode() + b"\xff\xfe"
    at = row.at.isoformat() if row.at else None
    k = "marker" if row.kind == "marker" else "a"
    return json.dumps({"id": row.id, "at": at, "k": k, "n": NUMBERS.get(row.kind, 1)}).encode()


def _version(folder: Path) -> int:
    commits = sorted((folder / "_delta_log").glob("*.json"))
    return int(commits[-1].stem) if commits else 0


def _rows(folder: Path) -> Counter[tuple[int, int]]:
    """Id and version of each; of windows their time, in minutes since 1970, and the count."""
    if not (folder / "_delta_log").exists():
        return Counter()
    table = DeltaTable(str(folder))
    if "id" not in [field.name for field in table.schema().fields]:
        windows = table.to_pyarrow_table().to_pylist()
        return Counter((int(row["at"].timestamp() // 60), row["n"]) for row in windows)
    rows = table.to_pyarrow_table(columns=["id", "v"]).to_pylist()
    return Counter((row["id"], row["v"]) for row in rows)


def _equal(what: str, found: Counter[Any], expected: Counter[Any]) -> None:
    if found != expected:
        raise Wrong(f"{what}: missing {dict(expected - found)}, too many {dict(found - expected)}")


Step = tuple[Any, ...]
"""A rule's name, and what it is given."""


def play(world: World, steps: Sequence[Step]) -> None:
    """A script: after each of its steps all that must be true is looked at."""
    for name, *given in steps:
        world.done.append(f"{name}{tuple(given)}")
        try:
            ended = getattr(world, name)(*given)
            world.done.append(f"  {ended}")
            world.check()
        except Exception as error:
            world.failed = True
            world.done.append(f"  {error}")
            raise
