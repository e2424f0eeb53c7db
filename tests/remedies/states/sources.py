"""Sources whose files or tables are not as a batch needs them."""

from __future__ import annotations

import gzip
import os
import shutil
from collections import Counter
from pathlib import Path

from drawdown.errors import DrawdownError
from tests.remedies.ground import FOLDER, NAME, SPEC, Ground
from tests.remedies.registry import Made, rows, state
from tests.support.deaths import die

STRICT = "rules: [{name: small, check: id < 2, on_fail: fail}]\n"
OTHER_OPTION = {"`options:": "what cannot be read of a file is lost"}


def _spec(ground: Ground, old: str, new: str) -> None:
    file = ground.root / FOLDER / "pipeline.yaml"
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


@state("source.gone")
def gone(ground: Ground) -> Made:
    """A batch is planned, and one of its files is deleted."""
    ground.new()
    ground.land(1)
    ground.sandbox.run(NAME)
    ground.quality(STRICT)
    file = ground.land(2)
    assert ground.sandbox.drain(NAME)[0].error is not None
    ground.quality("rules: []\n")
    away = file.rename(ground.root / "2.csv")
    ground.land(3)
    return Made(
        ground.refused("source.gone"),
        hands={"bring them back with their times": lambda: away.rename(file)},
        wanted={"": Counter([1, 2, 3]), "lost": Counter([1, 3])},
    )


@state("source.gone/a name that a shell would split", full=True)
def gone_of_a_hard_name(ground: Ground) -> Made:
    ground.new()
    ground.land(1)
    ground.sandbox.run(NAME)
    ground.quality(STRICT)
    name = "landing/events/it's & $HOME 2.csv"
    file = ground.sandbox.land(name, ["id,at", "2,2024-01-01T00:00:00Z"], mtime=2)
    assert ground.sandbox.drain(NAME)[0].error is not None
    ground.quality("rules: []\n")
    away = file.rename(ground.root / "2.csv")
    return Made(
        ground.refused("source.gone"),
        hands={"bring them back with their times": lambda: away.rename(file)},
        wanted={"": Counter([1, 2]), "lost": Counter([1])},
    )


@state("source.unreadable-file", full=True)
def unreadable(ground: Ground) -> Made:
    ground.new()
    ground.land(1)
    file = ground.sandbox.land("landing/events/2.csv.gz", "no gzip", mtime=2)

    def intact() -> None:
        file.write_bytes(gzip.compress(b"id,at\n2,2024-01-01T00:00:00Z\n"))
        os.utime(file, (2, 2))

    return Made(
        ground.refused("source.unreadable-file"),
        hands={"replace the file with an intact one": intact},
        outside=OTHER_OPTION,
        wanted={"": Counter([1, 2]), "takes it out": Counter([1])},
    )


def _limited(policy: str) -> str:
    more = f"    limits: {{record: 1k}}\n    policy: {{oversized: {policy}}}\n"
    return SPEC.replace("    options:", f"{more}    options:")


@state("source.oversized", full=True)
def oversized(ground: Ground) -> Made:
    ground.new(_limited("fail"))
    ground.land(1)
    file = ground.sandbox.land("landing/events/2.csv", ["id,at", "2," + "x" * 5_000], mtime=2)

    def smaller() -> None:
        file.unlink()
        ground.sandbox.land("landing/events/2a.csv", ["id,at", "2,2024-01-01T00:00:00Z"], mtime=2)

    return Made(
        ground.refused("source.oversized"),
        hands={
            "deliver it in smaller pieces": smaller,
            "raise `limits:`": lambda: _spec(ground, "record: 1k", "record: 1m"),
            "`policy: {oversized: aside}`": lambda: _spec(ground, "oversized: fail", "oversized: aside"),
        },
    )


@state("source.oversized/set aside")
def oversized_aside(ground: Ground) -> Made:
    """A run goes on without it, and says so."""
    ground.new(_limited("aside"))
    ground.land(1)
    ground.sandbox.land("landing/events/2.csv", ["id,at", "2," + "x" * 5_000], mtime=2)
    [notice] = ground.sandbox.run(NAME).notices

    def smaller() -> None:
        ground.sandbox.land("landing/events/2a.csv", ["id,at", "2,2024-01-01T00:00:00Z"], mtime=2)

    return Made(
        DrawdownError(notice["id"], notice["what"], do=notice["do"]),
        hands={
            "deliver it in smaller pieces": smaller,
            "raise `limits:`": lambda: _spec(ground, "record: 1k", "record: 1m"),
        },
    )


@state("source.drift")
def drift(ground: Ground) -> Made:
    ground.new(SPEC.replace("    options:", "    policy: {drift: fail}\n    options:"))
    ground.land(1)
    file = ground.sandbox.land("landing/events/2.csv", ["id,at,more", "2,2024-01-01T00:00:00Z,x"], mtime=2)

    def fix() -> None:
        file.write_text("id,at\n2,2024-01-01T00:00:00Z\n")

    return Made(
        ground.refused("source.drift"),
        hands={"fix the file": fix, "move it away": lambda: file.rename(ground.root / "2.csv")},
        wanted={"": Counter([1, 2]), "move it away": Counter([1])},
    )


@state("source.rewritten", full=True)
def rewritten(ground: Ground) -> Made:
    """A batch is tried again after a death, and a file of it has another content."""
    ground.new(SPEC.replace("    options:", "    policy: {rewritten: fail}\n    options:"))
    file = ground.land(1, 2)
    kept = shutil.copy2(file, ground.root / "kept.csv")
    die(ground.sandbox, NAME, "before batch.stage 1")
    file.write_text("id,at\n7,2024-01-01T00:00:00Z\n")

    def restore() -> None:
        shutil.copy2(kept, file)

    return Made(
        ground.refused("source.rewritten"),
        hands={
            "restore the old file": restore,
            "`policy: {rewritten: warn}`": lambda: _spec(ground, "rewritten: fail", "rewritten: warn"),
        },
        wanted={"": Counter([1, 2]), "warn": Counter([7])},
    )


@state("source.malformed", full=True)
def malformed(ground: Ground) -> Made:
    ground.new(SPEC.replace("    options:", "    malformed: fail\n    options:"))
    file = ground.sandbox.land("landing/events/1.csv", ["id,at", "x,y", "1,2024-01-01T00:00:00Z"], mtime=1)
    return Made(
        ground.refused("source.malformed"),
        hands={
            "fix the data": lambda: file.write_text("id,at\n1,2024-01-01T00:00:00Z\n"),
            "set `malformed: quarantine`": lambda: _spec(ground, "malformed: fail", "malformed: quarantine"),
        },
        wanted=rows(1),
    )


DELTA = """
sources: {events: {format: delta, path: tables/in}}
transform: transform.sql
sink: {format: delta, path: tables/orders, schema: out.ddl}
"""


def _add(ground: Ground, *ids: int) -> None:
    ground.forget()
    table = str(ground.sandbox.storage / "tables/in")
    for id in ids:
        ground.spark.createDataFrame([(id,)], "id INT").write.format("delta").mode("append").save(table)


def _next_version(ground: Ground, **options: bool) -> None:
    folder = ground.root / FOLDER
    files = [file for file in folder.iterdir() if file.is_file()]
    (folder / "next").mkdir()
    for file in files:
        shutil.copy(file, folder / "next")
    if options:
        spec = folder / "next/pipeline.yaml"
        said = ", ".join(f"{name}: {str(value).lower()}" for name, value in options.items())
        spec.write_text(spec.read_text().replace("tables/in}", f"tables/in, options: {{{said}}}}}"))


def _put_back(ground: Ground) -> tuple[Path, Path]:
    """The source's table as it was after its first version; and where the newer one is."""
    table, newer = ground.sandbox.storage / "tables/in", ground.root / "newer"
    table.rename(newer)
    shutil.copytree(ground.root / "kept", table)
    ground.forget()
    return table, newer


def _read_three(ground: Ground) -> None:
    ground.new(DELTA)
    _add(ground, 0)
    shutil.copytree(ground.sandbox.storage / "tables/in", ground.root / "kept")
    _add(ground, 1, 2)
    ground.sandbox.run(NAME)


def _older(ground: Ground, *after: int) -> Made:
    ground.base("read three", lambda: _read_three(ground))
    table, newer = _put_back(ground)
    _add(ground, *after)

    def bring_back() -> None:
        shutil.rmtree(table)
        newer.rename(table)

    error = ground.refused("source.older-copy")
    return Made(
        error,
        hands={"put the newer copy back": bring_back, "read all rows again": lambda: None},
        outside={"make a new pipeline folder": "another pipeline"},
        wanted={"": Counter([0, 1, 2]), "rebuild start": Counter([0, *after])},
    )


@state("source.older-copy", full=True)
def older_source(ground: Ground) -> Made:
    return _older(ground)


@state("source.older-copy/grown again", full=True)
def older_source_grown(ground: Ground) -> Made:
    return _older(ground, 3, 4, 5)


@state("source.made-again", full=True)
def made_again(ground: Ground) -> Made:
    ground.base("read three", lambda: _read_three(ground))
    table, old = ground.sandbox.storage / "tables/in", ground.root / "old"
    table.rename(old)
    _add(ground, 7)

    def bring_back() -> None:
        shutil.rmtree(table)
        old.rename(table)

    return Made(
        ground.refused("source.made-again"),
        hands={
            "restore the old table": bring_back,
            "set `failOnDataLoss: false`": lambda: _next_version(ground, failOnDataLoss=False),
        },
        outside={"make a new pipeline folder": "another pipeline"},
        wanted={"": Counter([0, 1, 2]), "rebuild start": Counter([7])},
    )
