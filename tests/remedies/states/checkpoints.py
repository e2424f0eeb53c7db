"""Checkpoints that are damaged, lost, foreign or changed, and commands that ask too much of one."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

from tests.remedies.ground import FILES, FOLDER, NAME, SPEC, Ground
from tests.remedies.registry import Made, rows, state
from tests.support.deaths import die
from tests.support.recovering import newest, tear

NEW_FOLDER = {"new pipeline folder": "another pipeline, which begins from nothing"}


def _torn(ground: Ground, spoil: Callable[[Path], object], id: str = "checkpoint.torn") -> Made:
    """A drained pipeline of which one file is spoilt; a copy of it is at hand."""
    own = ground.root / "own-copy"
    shutil.copytree(ground.checkpoint, own)

    def bring_back() -> None:
        shutil.rmtree(ground.checkpoint, ignore_errors=True)
        shutil.copytree(own, ground.checkpoint)

    spoil(ground.checkpoint)
    ground.land(3)
    phrases = ("restore the files from your own copy", "restore the folder from a copy", "from a copy")
    return Made(
        ground.refused(id),
        hands=dict.fromkeys(phrases, bring_back),
        outside=NEW_FOLDER,
        wanted=rows(1, 2, 3),
    )


def _write(file: Path, text: str) -> None:
    """Without a checksum, as another program writes."""
    file.write_text(text)
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)


@state("checkpoint.torn/commit", full=True)
def torn_commit(ground: Ground) -> Made:
    ground.drained()
    return _torn(ground, lambda folder: tear(newest(folder / "commits")))


@state("checkpoint.torn/offsets")
def torn_offsets(ground: Ground) -> Made:
    ground.drained()
    return _torn(ground, lambda folder: tear(newest(folder / "offsets")))


@state("checkpoint.torn/source log, a snapshot", full=True)
def torn_log_with_snapshot(ground: Ground) -> Made:
    ground.snapped()
    return _torn(ground, lambda folder: newest(folder / "sources/0").write_text("v1\ntorn"))


@state("checkpoint.torn/source log, no snapshot")
def torn_log(ground: Ground) -> Made:
    ground.drained()
    return _torn(ground, lambda folder: newest(folder / "sources/0").write_text("v1\ntorn"))


def _cut_off(ground: Ground) -> None:
    ground.snapped()
    die(ground.sandbox, NAME, "after recovery.sink 1", "checkpoint rewind --to 0 --sink")
    ground.land(3)


@state("checkpoint.torn/a rewind died")
def rewind_died(ground: Ground) -> Made:
    _cut_off(ground)
    return Made(ground.refused("checkpoint.torn"), wanted=rows(1, 2, 3))


@state("checkpoint.torn/a rewind died and a log is damaged")
def rewind_died_and_log_is_damaged(ground: Ground) -> Made:
    _cut_off(ground)
    (ground.checkpoint / "sources/0/0").unlink()
    return Made(ground.refused("checkpoint.torn"), wanted=rows(1, 2, 3))


@state("checkpoint.missing-entry")
def missing_entry(ground: Ground) -> Made:
    ground.snapped()
    (ground.checkpoint / "sources/0/0").unlink()
    error = ground.fails("checkpoint.missing-entry", f"checkpoint rewind {NAME} --to 0 --sink")
    return Made(error, outside=NEW_FOLDER, wanted=rows(1, 2))


@state("checkpoint.missing/a snapshot")
def missing_with_snapshot(ground: Ground) -> Made:
    ground.snapped()
    return _torn(ground, shutil.rmtree, "checkpoint.missing")


@state("checkpoint.missing/no snapshot")
def missing(ground: Ground) -> Made:
    ground.drained()
    return _torn(ground, shutil.rmtree, "checkpoint.missing")


@state("checkpoint.metadata-missing")
def metadata_missing(ground: Ground) -> Made:
    ground.drained()
    return _torn(ground, lambda folder: (folder / "metadata").unlink(), "checkpoint.metadata-missing")


@state("checkpoint.query-changed")
def query_changed(ground: Ground) -> Made:
    ground.drained()

    def another(folder: Path) -> None:
        _write(folder / "metadata", json.dumps({"id": "3a1e1b1c-0000-4000-8000-000000000000"}))

    return _torn(ground, another, "checkpoint.query-changed")


@state("checkpoint.query-changed/another checkpoint in its place")
def another_checkpoint(ground: Ground) -> Made:
    """That of a pipeline of another name, whose folder somebody has copied."""
    ground.snapped()
    spec = SPEC.replace("landing/events", "landing/others").replace("tables/orders", "tables/others")
    ground.sandbox.pipeline("others", spec, **FILES)
    for number in (1, 2):
        rows_of = ["id,at", f"1{number},2024-01-01T00:00:00Z"]
        ground.sandbox.land(f"landing/others/{number}.csv", rows_of, mtime=number)
        ground.sandbox.run("others")

    def copied(folder: Path) -> None:
        shutil.rmtree(folder)
        shutil.copytree(ground.sandbox.storage / "_drawdown/others/checkpoint-1", folder)

    return _torn(ground, copied, "checkpoint.query-changed")


def _spoilt(ground: Ground, text: str, id: str) -> Made:
    """A command that reads the offsets meets a text that Spark has not written there."""
    ground.drained()
    _write(newest(ground.checkpoint / "offsets"), text)
    error = ground.fails(id, f"checkpoint rewind {NAME} --to 1 --sink")
    return Made(error, outside={"run this pipeline with the newer Spark": "another Spark"}, wanted=rows(1, 2))


@state("checkpoint.foreign")
def foreign(ground: Ground) -> Made:
    return _spoilt(ground, "notes of mine", "checkpoint.foreign")


@state("checkpoint.future")
def future(ground: Ground) -> Made:
    return _spoilt(ground, "v99\n{}", "checkpoint.future")


@state("checkpoint.unknown/a snapshot")
def unknown_with_snapshot(ground: Ground) -> Made:
    return _without_metastore(ground, ground.snapped)


@state("checkpoint.unknown/no snapshot")
def unknown(ground: Ground) -> Made:
    return _without_metastore(ground, ground.drained)


def _without_metastore(ground: Ground, make: Callable[[], object]) -> Made:
    make()
    away = ground.root / "metastore-away.db"
    (ground.root / "metastore.db").rename(away)
    ground.land(3)
    error = ground.refused("checkpoint.unknown")

    def bring_back() -> None:
        if away.exists():
            for file in ground.root.glob("metastore.db*"):
                file.unlink()
            away.rename(ground.root / "metastore.db")

    return Made(
        error,
        hands={"point `metastore:`": bring_back, "restore the files from your own copy": bring_back},
        outside=NEW_FOLDER,
        wanted=rows(1, 2, 3),
    )


@state("checkpoint.none")
def none(ground: Ground) -> Made:
    ground.new()
    ground.land(1)
    error = ground.fails("checkpoint.none", f"checkpoint snapshot {NAME}")
    return Made(error, wanted=rows(1))


@state("checkpoint.no-snapshot/none is there")
def no_snapshot(ground: Ground) -> Made:
    ground.drained()
    error = ground.fails("checkpoint.no-snapshot", f"checkpoint restore {NAME} latest")
    return Made(error, again=f"checkpoint restore {NAME} latest", wanted=rows(1, 2))


@state("checkpoint.no-snapshot/another is there")
def no_such_snapshot(ground: Ground) -> Made:
    ground.snapped()
    error = ground.fails("checkpoint.no-snapshot", f"checkpoint restore {NAME} 1999")
    named = error.do.rpartition(": ")[2]
    return Made(
        error,
        hands={"name one of": lambda: ground.well(f"checkpoint restore {NAME} {named} --sink")},
        wanted=rows(1, 2),
    )


@state("checkpoint.not-kept")
def not_kept(ground: Ground) -> Made:
    ground.drained()
    error = ground.fails("checkpoint.not-kept", f"checkpoint rewind {NAME} --to 99 --sink")
    assert "batches 0 to 1 are kept" in error.what
    command = f"checkpoint rewind {NAME} --to 1 --sink"
    return Made(error, hands={"choose one of those": lambda: None}, again=command, wanted=rows(1, 2))


@state("checkpoint.whole")
def whole(ground: Ground) -> Made:
    ground.drained()
    ground.land(3)
    return Made(ground.fails("checkpoint.whole", f"checkpoint repair {NAME}"), wanted=rows(1, 2, 3))


@state("checkpoint.event-times")
def event_times(ground: Ground) -> Made:
    source = "{format: csv, path: landing/NAME, schema: events.ddl, options: {header: true}, WATERMARK}"
    source = source.replace("WATERMARK", "watermark: {column: at, delay: 1 minute}")
    both = ", ".join(f"{name}: {source.replace('NAME', name)}" for name in ("events", "others"))
    spec = f"sources: {{{both}}}\n" + SPEC[SPEC.index("transform:") :]
    ground.new(spec, transform_sql="SELECT id FROM events UNION ALL SELECT id FROM others\n")
    ground.land(1)
    ground.sandbox.land("landing/others/1.csv", ["id,at", "11,2024-01-01T00:00:00Z"], mtime=1)
    ground.sandbox.run(NAME)
    ground.well(f"checkpoint snapshot {NAME}")
    ground.land(2)
    ground.sandbox.run(NAME)
    error = ground.fails("checkpoint.event-times", f"checkpoint rewind {NAME} --to 0 --sink")
    return Made(error, again=f"checkpoint restore {NAME} latest --sink", wanted=rows(1, 2, 11))


@state("checkpoint.changed", full=True)
def changed(ground: Ground) -> Made:
    """State is kept by another key: Spark could not go on from it."""
    before = "SELECT id FROM (SELECT id, count(*) AS n FROM events GROUP BY id)\n"
    after = "SELECT id FROM (SELECT id, date(at), count(*) AS n FROM events GROUP BY id, date(at))\n"
    spec = SPEC.replace("schema: out.ddl", "schema: out.ddl, mode: update, keys: [id]")
    ground.new(spec, transform_sql=before)
    ground.land(1)
    ground.sandbox.run(NAME)
    folder = ground.root / FOLDER
    (folder / "transform.sql").write_text(after)
    ground.land(2)
    error = ground.refused("checkpoint.changed")

    def undo() -> None:
        (folder / "transform.sql").write_text(before)

    def move_into_next() -> None:
        files = [file for file in folder.iterdir() if file.is_file()]
        (folder / "next").mkdir()
        for file in files:
            shutil.copy(file, folder / "next")

    return Made(
        error,
        hands={"undo the change": undo, "put the new version into the folder `next/`": move_into_next},
        outside={**NEW_FOLDER, "if only the versions": "a release that describes operators otherwise"},
        wanted=rows(1, 2),
    )
