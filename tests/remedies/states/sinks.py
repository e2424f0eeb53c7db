"""Sinks that are not as the metastore knows them."""

from __future__ import annotations

import shutil
from collections import Counter

from deltalake import DeltaTable

from drawdown.errors import DrawdownError
from tests.remedies.ground import FAILS, NAME, SPEC, TABLE, Ground
from tests.remedies.registry import Made, rows, state
from tests.support.deaths import free_lease


@state("sink.older-copy")
def older_copy(ground: Ground) -> Made:
    ground.drained()
    table, kept, newer = ground.sandbox.storage / TABLE, ground.root / "kept", ground.root / "newer"

    def older() -> None:
        ground.new()
        ground.land(1)
        ground.sandbox.run(NAME)
        shutil.copytree(table, kept)
        ground.land(2)
        ground.sandbox.run(NAME)

    ground.base("older", older)
    table.rename(newer)
    shutil.copytree(kept, table)

    def bring_back() -> None:
        shutil.rmtree(table)
        newer.rename(table)

    ground.land(3)
    return Made(
        ground.refused("sink.older-copy"),
        hands={"put the newer copy back": bring_back},
        wanted={"": Counter([1, 2, 3]), "accept": Counter([1, 3])},
    )


@state("sink.missing")
def missing(ground: Ground) -> Made:
    ground.drained()
    table, away = ground.sandbox.storage / TABLE, ground.root / "away"
    table.rename(away)
    ground.land(3)
    return Made(
        ground.refused("sink.missing"),
        hands={"restore the table": lambda: away.rename(table)},
        wanted=rows(1, 2, 3),
    )


@state("sink.ahead")
def ahead(ground: Ground) -> Made:
    ground.drained()
    return Made(
        ground.fails("sink.ahead", f"checkpoint rewind {NAME} --to 0"),
        outside={"new pipeline folder": "another pipeline"},
        wanted=rows(1, 2),
    )


@state("sink.staged-gone")
def staged_gone(ground: Ground) -> Made:
    ground.held()
    table, away = ground.sandbox.storage / TABLE, ground.root / "away"
    away.mkdir()
    known = {str(path) for path in _files_of(ground)}
    waiting = [path for path in table.rglob("*.parquet") if str(path) not in known]
    gone = {path.name: path for path in waiting}
    for path in waiting:
        path.rename(away / path.name)

    def bring_back() -> None:
        for path in away.iterdir():
            path.rename(gone[path.name])
        ground.well(f"release {NAME} --why ...")

    return Made(
        ground.fails("sink.staged-gone", f"release {NAME} --why ..."),
        hands={"put the files back": bring_back},
        wanted={"": Counter([1, 2]), "discard": Counter([1])},
    )


def _files_of(ground: Ground) -> list[str]:
    return list(DeltaTable(str(ground.sandbox.storage / TABLE)).file_uris())


@state("sink.not-ours", full=True)
def not_ours(ground: Ground) -> Made:
    ground.new()
    table = ground.sandbox.storage / TABLE
    frame = ground.spark.createDataFrame([(7,)], "id INT")
    frame.write.format("delta").save(str(table))
    ground.land(1)

    def another_path() -> None:
        spec = ground.root / "include/pipelines" / NAME / "pipeline.yaml"
        spec.write_text(spec.read_text().replace(TABLE, "tables/other"))

    return Made(
        ground.refused("sink.not-ours"),
        hands={
            "give the pipeline another": another_path,
            "move the table away": lambda: table.rename(ground.root / "old"),
        },
    )


@state("sink.between", full=True)
def between(ground: Ground) -> Made:
    """A slice was released after a later batch was published: no version has the batches up to 1 only."""
    spec = SPEC.replace("schema: out.ddl", "schema: out.ddl, ordered: false")
    ground.new(spec)
    ground.land(1)
    ground.sandbox.run(NAME)
    ground.quality(FAILS)
    ground.land(2)
    ground.refused("audit.fail")
    ground.quality("rules: []\n")
    ground.land(3)
    ground.sandbox.run(NAME)
    ground.well(f"release {NAME} --why ...")
    error = ground.fails("sink.between", f"checkpoint rewind {NAME} --to 1 --sink")
    return Made(error, wanted=rows(1, 2, 3))


@state("sink.behind")
def behind(ground: Ground) -> Made:
    """A snapshot knows a batch as published that the sink was taken back from."""
    ground.drained()
    ground.well(f"checkpoint snapshot {NAME}")
    ground.well(f"checkpoint rewind {NAME} --to 0 --sink")
    error = ground.fails("sink.behind", f"checkpoint restore {NAME} latest")
    return Made(error, again=f"checkpoint rewind {NAME} --to 0 --sink", wanted=rows(1, 2))


TAKEN_OVER = """
import sqlite3

def write(batch, token):
    batch.count()
    with sqlite3.connect("METASTORE") as store:
        store.execute("UPDATE leases SET epoch = epoch + 1, holder = 'another', released = 0")
"""


@state("lease.lost")
def lease_lost(ground: Ground) -> Made:
    """Another holder has taken over while the sink was at work."""
    spec = SPEC.replace("{format: delta, path: tables/orders, schema: out.ddl}", FUNCTION)
    ground.new(spec, sink_py=TAKEN_OVER.replace("METASTORE", str(ground.root / "metastore.db")))
    sink = ground.root / "include/pipelines" / NAME / "sink.py"
    ground.land(1)
    error = ground.refused("lease.lost")
    sink.write_text("def write(batch, token):\n    batch.count()\n")
    free_lease(ground.sandbox)
    return Made(error)


FUNCTION = "{format: foreach_batch, function: sink.py}"


@state("sink.replays-undone", full=True)
def replays_undone(ground: Ground) -> Made:
    """A notice: going back has undone a backfill, too."""
    spec = SPEC.replace("    options:", "    watermark: {column: at, delay: 0 seconds}\n    options:")
    spec = spec.replace("schema: out.ddl", "schema: events.ddl, time_column: at")
    ground.new(spec + "replay: {interval: 1 day}\n", transform_sql="SELECT * FROM events\n")
    for day in (1, 2, 3):
        text = ["id,at", f"{day},2024-01-0{day}T12:00:00Z"]
        ground.sandbox.land(f"landing/events/{day}.csv", text, mtime=day)
        ground.sandbox.run(NAME)
    ground.well(f"backfill {NAME} --from 2024-01-01 --to 2024-01-02")
    ground.forget()
    ground.well(f"checkpoint rewind {NAME} --to 0 --sink")
    with ground.sandbox.metastore() as metastore:
        [notice] = metastore.runs(NAME)[0].notices
    ground.forget()
    ground.sandbox.run(NAME)
    return Made(DrawdownError(notice["id"], notice["what"], do=notice["do"]), wanted=rows(1, 2, 3))
