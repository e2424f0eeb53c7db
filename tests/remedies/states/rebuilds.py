"""Rebuilds that are not there, not ready, or not what was decided about."""

from __future__ import annotations

import re
import shutil
from collections import Counter

from drawdown.errors import DrawdownError
from tests.remedies.ground import FAILS, FOLDER, NAME, SPEC, Ground
from tests.remedies.registry import Made, rows, state
from tests.support.deaths import die

START = f"rebuild start {NAME}"
APPROVE = f"rebuild approve {NAME} --why ..."


def _next(ground: Ground, **files: str) -> None:
    """A next version, which is the same but for these files."""
    folder = ground.root / FOLDER
    there = [file for file in folder.iterdir() if file.is_file()]
    (folder / "next").mkdir()
    for file in there:
        shutil.copy(file, folder / "next")
    for name, text in files.items():
        (folder / "next" / name.replace("_", ".")).write_text(text)


def _compare(ground: Ground) -> None:
    ground.new()
    ground.land(1)
    ground.sandbox.run(NAME)
    ground.land(2)
    ground.sandbox.run(NAME)
    _next(ground)
    ground.well(START)


def _compared(ground: Ground) -> None:
    """A rebuild that is drained and compared."""
    ground.base("compared", lambda: _compare(ground))


@state("rebuild.none", full=True)
def none(ground: Ground) -> Made:
    ground.drained()
    return Made(ground.fails("rebuild.none", APPROVE), again=APPROVE, wanted=rows(1, 2))


@state("rebuild.none/to show", full=True)
def none_to_show(ground: Ground) -> Made:
    ground.drained()
    return Made(ground.fails("rebuild.none", f"rebuild show {NAME}"), again=f"rebuild show {NAME}")


@state("rebuild.nothing-live", full=True)
def nothing_live(ground: Ground) -> Made:
    ground.new()
    ground.land(1)
    return Made(ground.fails("rebuild.nothing-live", START), again=START, wanted=rows(1))


@state("rebuild.not-swapped")
def not_swapped(ground: Ground) -> Made:
    ground.drained()
    rollback = f"rebuild rollback {NAME} --why ..."
    return Made(ground.fails("rebuild.not-swapped", rollback), fill={"BATCH": "1"}, wanted=rows(1, 2))


@state("rebuild.waiting", full=True)
def waiting(ground: Ground) -> Made:
    _compared(ground)
    ground.quality(FAILS)
    ground.land(3)
    ground.refused("audit.fail")
    ground.quality("rules: []\n")
    error = ground.fails("rebuild.waiting", APPROVE)
    return Made(error, again=APPROVE, wanted={"": Counter([1, 2, 3])})


@state("rebuild.not-compared", full=True)
def not_compared(ground: Ground) -> Made:
    ground.drained()
    _next(ground)
    die(ground.sandbox, NAME, "before rebuild.compare", "rebuild start")
    return Made(ground.fails("rebuild.not-compared", APPROVE), again=APPROVE, wanted=rows(1, 2))


@state("rebuild.audit-failed", full=True)
def audit_failed(ground: Ground) -> Made:
    ground.drained()
    _next(ground, quality_yaml=FAILS)
    ground.fails("audit.fail", START)
    strict = ground.root / FOLDER / "next/quality.yaml"
    error = ground.fails("rebuild.audit-failed", START)
    return Made(error, hands={"fix the new version": strict.unlink}, again=APPROVE, wanted=rows(1, 2))


@state("rebuild.another", full=True)
def another(ground: Ground) -> Made:
    _compared(ground)
    said = ground.well(f"rebuild show {NAME}").text
    shown = re.search(r"rebuild (\S+), generation", said)
    assert shown is not None, said
    ground.land(3)
    ground.sandbox.run(NAME)
    ground.well(START)
    error = ground.fails("rebuild.another", f"{APPROVE} --rebuild {shown[1]}")
    return Made(error, again=APPROVE, wanted=rows(1, 2, 3))


@state("rebuild.unfinished")
def unfinished(ground: Ground) -> Made:
    _compared(ground)
    die(ground.sandbox, NAME, "after rebuild.begin", "rebuild approve --why x")
    ground.land(3)
    return Made(ground.refused("rebuild.unfinished"), wanted=rows(1, 2, 3))


@state("checkpoint.other-generation", full=True)
def other_generation(ground: Ground) -> Made:
    ground.snapped()
    _next(ground)
    ground.well(START)
    ground.well(APPROVE)
    error = ground.fails("checkpoint.other-generation", f"checkpoint restore {NAME} latest --sink")
    return Made(error, wanted=rows(1, 2))


READER = """
sources: {rows: {format: delta, path: tables/orders, options: {skipChangeCommits: true}}}
transform: transform.sql
sink: {format: delta, path: tables/copy, schema: out.ddl}
"""


def _read(ground: Ground) -> None:
    """Another pipeline streams the table."""
    ground.drained()
    ground.sandbox.pipeline("reader", READER, out_ddl="id INT", transform_sql="SELECT id FROM rows\n")
    ground.sandbox.run("reader")


@state("sink.readers", full=True)
def readers(ground: Ground) -> Made:
    _read(ground)
    error = ground.fails("sink.readers", f"checkpoint rewind {NAME} --to 0 --sink")
    return Made(error, names=(NAME, "reader"), wanted=rows(1, 2), goes_on=lambda: _copy_is_right(ground))


def _copy_is_right(ground: Ground) -> None:
    ground.forget()
    for name in (NAME, "reader"):
        assert ground.sandbox.drain(name)[0].error is None
    assert Counter(row[0] for row in ground.sandbox.delta("tables/copy")) == ground.ids() == Counter([1, 2])


@state("rebuild.readers", full=True)
def rebuild_readers(ground: Ground) -> Made:
    _read(ground)
    _next(ground, transform_sql="SELECT id FROM events WHERE id > 0\n")
    ground.well(START)
    ground.land(3)
    ground.sandbox.run(NAME)
    return Made(
        ground.fails("rebuild.readers", APPROVE),
        names=(NAME,),
        wanted=rows(1, 2, 3),
    )


@state("sink.rows-again", full=True)
def rows_again(ground: Ground) -> Made:
    """A notice of the rewind that somebody has insisted on."""
    _read(ground)
    ground.well(f"checkpoint rewind {NAME} --to 0 --sink --yes")
    with ground.sandbox.metastore() as metastore:
        [notice] = metastore.runs(NAME)[0].notices
    ground.forget()
    ground.sandbox.run(NAME)
    error = DrawdownError(notice["id"], notice["what"], do=notice["do"])
    return Made(error, goes_on=lambda: _copy_is_right(ground))


@state("accept.meaning", full=True)
def accept_meaning(ground: Ground) -> Made:
    """The query keeps its state by another key, which is more than another description."""
    spec = SPEC.replace("schema: out.ddl", "schema: out.ddl, mode: update, keys: [id]")
    before = "SELECT id FROM (SELECT id, count(*) AS n FROM events GROUP BY id)\n"
    ground.new(spec, transform_sql=before)
    ground.land(1)
    ground.sandbox.run(NAME)
    sql = ground.root / FOLDER / "transform.sql"
    sql.write_text("SELECT id FROM (SELECT id, date(at), count(*) AS n FROM events GROUP BY id, date(at))\n")
    return Made(
        ground.fails("accept.meaning", f"checkpoint accept {NAME} --why ..."),
        hands={
            "undo the change": lambda: sql.write_text(before),
            "put the new version into the folder `next/`": lambda: _next(ground),
        },
        outside={"new pipeline folder": "another pipeline", "only the versions": "what was refused"},
        wanted=rows(1),
    )
