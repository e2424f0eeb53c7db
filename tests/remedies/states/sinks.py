"""Sinks that are not as the metastore knows them."""

from __future__ import annotations

import shutil
from collections import Counter

from deltalake import DeltaTable

from tests.remedies.ground import FAILS, NAME, SPEC, TABLE, Ground
from tests.remedies.registry import Made, rows, state


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


@state("sink.not-ours")
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


@state("sink.between")
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
