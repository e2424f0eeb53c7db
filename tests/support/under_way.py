"""What may be under way in a pipeline when a second command comes, and the commands.


An actor dies at a named step, or stands still there while the other command is typed. Everything runs in one
warm session, through the same calls as the model test's.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from tests.model.actions import Actions, Ended, Moment, commands_of
from tests.support.frozen import frozen

NAME = "out"
SPEC = """
sources:
  events:
    format: json
    path: landing/events
    schema: "id BIGINT, at TIMESTAMP"
    watermark: {column: at, delay: 0 seconds}
transform: transform.sql
sink: {SINK}
state: {partitions: 1}
REPLAY"""
FILES = {"out_ddl": "id BIGINT, at TIMESTAMP", "transform_sql": "SELECT id, at FROM events"}
REPLAY = "replay: {interval: 1 day}\n"
STRICT = """
rules: [{name: small, check: id < 90, on_fail: quarantine}]
expectations:
  - {type: expect_table_row_count_to_be_between, kwargs: {max_value: 3}}
"""
LOOSE = STRICT.replace("90", "100")
DAY = ("2024-01-01T00:00:00Z", "2024-01-02T00:00:00Z")


@dataclass
class Project:
    """A pipeline with two published batches (ids 1, 2), a quarantined row (95), and a snapshot between."""

    root: Path
    spark: SparkSession
    sink: str
    replays: bool = True

    def __post_init__(self) -> None:
        self.actions = Actions(self.root, self.spark, name=NAME)
        self.landed, self.ids = 0, list[int]()
        spec = SPEC.replace("SINK", self.sink).replace("REPLAY", REPLAY if self.replays else "")
        self.actions.sandbox.pipeline(NAME, spec, **FILES)
        self.quality(STRICT)
        self.land(1, 95)
        self.done(self.actions.drain())
        self.done(self.actions.command("checkpoint", "snapshot", NAME))
        self.land(2)
        self.done(self.actions.drain())

    @property
    def folder(self) -> Path:
        return self.root / "include/pipelines" / NAME

    def quality(self, text: str) -> None:
        (self.folder / "quality.yaml").write_text(text)

    def next_version(self) -> None:
        """Another version in `next/`, which brings the same rows."""
        shutil.copytree(self.folder, self.folder / "next")
        (self.folder / "next/transform.sql").write_text("SELECT id + 0 AS id, at FROM events")

    def land(self, *ids: int) -> None:
        self.landed += 1
        self.ids += [id for id in ids if id < 90]
        # The second batch closes the day of the first.
        day = 1 if self.landed == 1 else 3
        lines = [json.dumps({"id": id, "at": f"2024-01-0{day}T0{self.landed}:00:00Z"}) for id in ids]
        self.actions.sandbox.land(f"landing/events/{self.landed}.json", lines, mtime=self.landed)

    def done(self, ended: Ended) -> Ended:
        assert ended.error is None, str(ended.error)
        return ended

    def died(self, ended: Ended) -> None:
        assert ended.died, str(ended)

    def in_sink(self) -> Counter[int]:
        return Counter(int(row[0]) for row in self.actions.sandbox.delta("tables/out"))

    def led_out(self) -> list[str]:
        """Drain until nothing is new; type what a refusal names first. Raises AssertionError: no way out."""
        tried: list[str] = []
        for _ in range(8):
            ended = self.actions.drain(name=self.name_now)
            if ended.error is None:
                if not ended.ran:
                    return tried
                continue
            tried.append(str(ended.error))
            if ended.id == "audit.fail":
                continue
            commands = commands_of(ended.error)
            assert commands, "\n".join(["no command leads out of", *tried])
            tried.append(f"typed {commands[0]}: {self.actions.typed(commands[0])}")
        raise AssertionError("\n".join(["no way out", *tried]))

    def released(self) -> None:
        """What is held in the end becomes visible."""
        with self.actions.sandbox.metastore() as metastore:
            held = metastore.held_slices(self.name_now)
        if held:
            self.done(self.actions.command("release", self.name_now, "--why", "x"))

    def keep(self) -> Path:
        return Path(shutil.copytree(self.root, self.root.with_name(f"{self.root.name}-kept")))

    def put_back(self, kept: Path) -> None:
        """In the same place: a checkpoint holds the absolute paths of its files."""
        shutil.rmtree(self.root)
        shutil.copytree(kept, self.root)
        self.actions.forget_tables()

    @property
    def name_now(self) -> str:
        names = [each.name for each in (self.root / "include/pipelines").iterdir()]
        assert len(names) == 1
        return names[0]


def _dead_drain(on: Project) -> None:
    on.land(3)
    on.died(on.actions.drain(Moment("after", "batch.note")))


def _dead_publish(on: Project) -> None:
    on.land(3)
    on.died(on.actions.drain(Moment("before", "publish.note")))


def _held(on: Project) -> None:
    on.land(3, 4, 5, 6)
    assert on.actions.drain().id == "audit.fail"


def _dead_release(on: Project) -> None:
    _held(on)
    on.died(on.actions.command("release", NAME, "--why", "x", moment=Moment("before", "publish.note")))


def _dead_replay(on: Project) -> None:
    on.died(on.actions.backfill(*DAY, Moment("after", "replay.stage")))


def _dead_quarantine_replay(on: Project) -> None:
    on.quality(LOOSE)
    on.died(on.actions.replay_quarantine(moment=Moment("after", "replay.note")))


def _dead_rewind(on: Project) -> None:
    words = ("checkpoint", "rewind", NAME, "--to", "0", "--sink")
    on.died(on.actions.command(*words, moment=Moment("before", "recovery.forget")))


def _dead_rewind_of_a_held_slice(on: Project) -> None:
    _held(on)
    _dead_rewind(on)


def _dead_restore(on: Project) -> None:
    words = ("checkpoint", "restore", NAME, "latest", "--sink")
    on.died(on.actions.command(*words, moment=Moment("before", "recovery.forget")))


def _dead_rebuild(on: Project) -> None:
    on.next_version()
    on.died(on.actions.rebuild(Moment("before", "batch.note")))


def _compared_rebuild(on: Project) -> None:
    on.next_version()
    on.done(on.actions.rebuild())


def _dead_approve(on: Project) -> None:
    _compared_rebuild(on)
    words = ("rebuild", "approve", NAME, "--why", "x")
    on.died(on.actions.command(*words, moment=Moment("before", "rebuild.note")))


def _swapped(on: Project) -> None:
    _compared_rebuild(on)
    on.done(on.actions.command("rebuild", "approve", NAME, "--why", "x"))


def _dead_rename(on: Project) -> None:
    _renamed_folder(on)
    words = ("rename", NAME, "other", "--why", "x")
    on.died(on.actions.command(*words, moment=Moment("before", "rename.switch")))


STATES: dict[str, Callable[[Project], None]] = {
    "nothing": lambda _: None,
    "a drain that died": _dead_drain,
    "a publish that died": _dead_publish,
    "a held slice": _held,
    "a release that died": _dead_release,
    "a backfill that died": _dead_replay,
    "a replay of quarantined rows that died": _dead_quarantine_replay,
    "a rewind that died": _dead_rewind,
    "a rewind that died behind a held slice": _dead_rewind_of_a_held_slice,
    "a restore that died": _dead_restore,
    "a rebuild that died": _dead_rebuild,
    "a rebuild to decide about": _compared_rebuild,
    "an approval that died": _dead_approve,
    "a rebuild that was approved": _swapped,
    "a rename that died": _dead_rename,
}
"""By what is under way."""


def _amid(on: Project, command: str, work: Callable[[Moment], Ended], when: str, step: str) -> Ended:
    """Type a command while another stands at a step; it then goes on to its end."""
    ended: list[Ended] = []
    work(Moment(when, step, then=lambda: ended.append(COMMANDS[command](on))))
    return ended[0]


def _amid_a_drain(on: Project, command: str) -> Ended:
    on.land(3)
    return _amid(on, command, lambda moment: on.actions.drain(moment), "before", "batch.note")


def _amid_a_backfill(on: Project, command: str) -> Ended:
    return _amid(on, command, lambda moment: on.actions.backfill(*DAY, moment), "before", "table.commit")


def _amid_a_rewind(on: Project, command: str) -> Ended:
    with frozen(
        on.actions.sandbox, NAME, "before recovery.forget", ("checkpoint", "rewind"), ("--to", "0", "--sink")
    ) as rewind:
        ended = COMMANDS[command](on)
        code, said = rewind.wake()
    assert code == 0, said
    return ended


def _amid_an_upkeep(on: Project, command: str) -> Ended:
    with frozen(on.actions.sandbox, NAME, "before upkeep.prune", ("upkeep",)) as upkeep:
        ended = COMMANDS[command](on)
        code, said = upkeep.wake()
    assert code == 0, said
    return ended


LIVE: dict[str, Callable[[Project, str], Ended]] = {
    "a drain that runs": _amid_a_drain,
    "a backfill that commits": _amid_a_backfill,
    "a rewind that runs": _amid_a_rewind,
    "an upkeep that runs": _amid_an_upkeep,
}
"""By what runs at that moment, and goes on when the command has ended."""


WAITS = {("a backfill that commits", "backfill"), ("a backfill that commits", "quarantine replay")}
"""Pairs of which the second waits for the first, and goes on when that has ended (test_replay_deaths.py)."""


def _renamed_folder(on: Project) -> None:
    folders = on.root / "include/pipelines"
    spec = (on.folder / "pipeline.yaml").read_text()
    on.folder.rename(folders / "other")
    for version in (folders / "other").rglob("pipeline.yaml"):
        version.write_text(f"{spec}first_name: {NAME}\n")


def _rename(on: Project) -> Ended:
    if on.folder.exists():
        _renamed_folder(on)
    ended = on.actions.command("rename", NAME, "other", "--why", "x")
    if ended.error is not None and not (on.root / "include/pipelines" / NAME).exists():
        (on.root / "include/pipelines/other").rename(on.folder)
        for version in on.folder.rglob("pipeline.yaml"):
            version.write_text(version.read_text().replace(f"first_name: {NAME}\n", ""))
    return ended


def _typed(*words: str) -> Callable[[Project], Ended]:
    return lambda on: on.actions.command(*(word if word != NAME else on.name_now for word in words))


def _replay_quarantine(on: Project) -> Ended:
    (on.root / "include/pipelines" / on.name_now / "quality.yaml").write_text(LOOSE)
    return on.actions.replay_quarantine()


def _rebuild(on: Project) -> Ended:
    if not (on.folder / "next").exists() and on.folder.exists():
        on.next_version()
    return on.actions.rebuild()


WHY = ("--why", "x")
COMMANDS: dict[str, Callable[[Project], Ended]] = {
    "run": lambda on: on.actions.drain(name=on.name_now),
    "backfill": lambda on: on.actions.backfill(*DAY),
    "quarantine replay": _replay_quarantine,
    "quarantine drop": _typed("quarantine", "drop", NAME, *WHY, "--yes"),
    "release": _typed("release", NAME, *WHY),
    "discard": _typed("discard", NAME, *WHY),
    "checkpoint rewind": _typed("checkpoint", "rewind", NAME, "--to", "0", "--sink"),
    "checkpoint restore": _typed("checkpoint", "restore", NAME, "latest", "--sink"),
    "checkpoint snapshot": _typed("checkpoint", "snapshot", NAME),
    "checkpoint repair": _typed("checkpoint", "repair", NAME),
    "rebuild start": _rebuild,
    "rebuild approve": _typed("rebuild", "approve", NAME, *WHY),
    "rebuild discard": _typed("rebuild", "discard", NAME, *WHY),
    "rebuild rollback": _typed("rebuild", "rollback", NAME, *WHY),
    "rename": _rename,
    "upkeep": _typed("upkeep", NAME),
}
"""By how they are typed."""
