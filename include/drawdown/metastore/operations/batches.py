"""Batches and the files they staged: staged -> committed -> passed | held -> published | discarded.

Each step only changes batches that are in the status before it; doing it twice changes nothing more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import islice
from typing import Any, get_args

from sqlalchemy import ColumnElement, Connection, delete, func, insert, or_, select, update

from drawdown.errors import RefusedError
from drawdown.metastore import counts
from drawdown.metastore.records import UNPUBLISHED, Batch, BatchStatus, Run, StagedFile, StagedTable
from drawdown.metastore.tables import batches, staged_files
from drawdown.values.text import counted


@dataclass(frozen=True)
class _Step:
    """A change of status: from one of these, to this one."""

    allowed: tuple[BatchStatus, ...]
    to: BatchStatus


_PUBLISHED = _Step(("passed", "held"), "published")
_DISCARDED = _Step(UNPUBLISHED, "discarded")
_VISIBLE_IF_DIRECT: tuple[BatchStatus, ...] = ("committed", "passed", "held")
_NEWEST = 100
_IDS_PER_STATEMENT = 1000  # both stores bound the parameters of one statement


def note(conn: Connection, batch: Batch, files: Sequence[StagedFile]) -> None:
    """Write a batch and its files, over what an earlier attempt wrote for the same batch id.

    Raises RefusedError batch.published when readers already see that batch: staging it again would publish
    its rows twice.
    """
    here = _at(batches.c, batch.pipeline, batch.generation, [batch.batch_id])
    if conn.execute(select(batches.c.status).where(*here)).scalar() == "published":
        raise RefusedError(
            "batch.published",
            f"batch {batch.batch_id} of {batch.pipeline} (generation {batch.generation}) is published",
            where=f"pipeline {batch.pipeline}",
            do="its commit log entry is missing from the checkpoint: `drawdown checkpoint repair"
            f" {batch.pipeline}` rewrites it",
        )
    conn.execute(delete(staged_files).where(*_at(staged_files.c, *_key(batch), [batch.batch_id])))
    conn.execute(delete(batches).where(*here))
    values = {f.name: getattr(batch, f.name) for f in fields(batch)}
    conn.execute(insert(batches).values(counts.to_columns(values)))
    if files:
        conn.execute(insert(staged_files), [_file_row(batch, file) for file in files])


def mark_committed(conn: Connection, pipeline: str, generation: int, last_batch: int) -> None:
    """Change staged -> committed, for batch ids up to ``last_batch``, the last in Spark's commit log."""
    conn.execute(
        update(batches)
        .where(
            *_of(batches.c, pipeline, generation),
            batches.c.status == "staged",
            batches.c.batch_id <= last_batch,
        )
        .values(status="committed")
    )


def mark_published(conn: Connection, pipeline: str, generation: int, batch_ids: Iterable[int]) -> None:
    """Change passed or held (after a release) -> published. Raises RefusedError batch.unjudged for others."""
    _move(conn, pipeline, generation, batch_ids, _PUBLISHED)


def discard(conn: Connection, pipeline: str, generation: int, batch_ids: Iterable[int]) -> None:
    """Change any status but published -> discarded. Raises RefusedError batch.published."""
    _move(conn, pipeline, generation, batch_ids, _DISCARDED)


def read_one(conn: Connection, pipeline: str, generation: int, batch_id: int) -> Batch | None:
    """Return one batch; None when it is not recorded."""
    found = conn.execute(select(batches).where(*_at(batches.c, pipeline, generation, [batch_id])))
    row = found.one_or_none()
    return None if row is None else Batch(**counts.from_columns(row._mapping))


def read(
    conn: Connection,
    pipeline: str,
    generation: int,
    statuses: Iterable[BatchStatus] | None = None,
    *,
    first_batch: int = 0,
) -> list[Batch]:
    """Return batches sorted by id, of some or all statuses, from ``first_batch`` on. Reads only those."""
    wanted = [*_of(batches.c, pipeline, generation), batches.c.batch_id >= first_batch]
    query = select(batches).where(*wanted)
    # One lookup per status, sorted here: with ORDER BY, SQLite would read the pipeline's whole history.
    some = [query] if statuses is None else [query.where(batches.c.status == s) for s in set(statuses)]
    rows = (row for one in some for row in conn.execute(one))
    found = [Batch(**counts.from_columns(row._mapping)) for row in rows]
    return sorted(found, key=lambda batch: batch.batch_id)


def read_newest(conn: Connection, pipeline: str, generation: int, limit: int) -> list[Batch]:
    """Return the last batches of a generation, newest first, as many as the limit."""
    query = select(batches).where(*_of(batches.c, pipeline, generation))
    rows = conn.execute(query.order_by(batches.c.batch_id.desc()).limit(limit))
    return [Batch(**counts.from_columns(row._mapping)) for row in rows]


def read_of_run(conn: Connection, run: Run, limit: int) -> list[Batch]:
    """Return the last batches that a run has read, in order, as many as the limit.

    They are looked for from the last one that its progress names, back to the first that is another run's: a
    look at every batch of the generation would take longer with each run.
    """
    if run.generation is None:
        return []
    query = select(batches).where(*_of(batches.c, run.pipeline, run.generation))
    last = max((entry["batch_id"] for entry in run.progress), default=None)
    if last is None:
        query = query.where(batches.c.run_id == run.run_id)
    else:
        query = query.where(batches.c.batch_id <= last)
    rows = conn.execute(query.order_by(batches.c.batch_id.desc()).limit(limit))
    found = [Batch(**counts.from_columns(row._mapping)) for row in rows]
    return [batch for batch in reversed(found) if batch.run_id == run.run_id]


def read_files(
    conn: Connection,
    pipeline: str,
    generation: int,
    batch_ids: Iterable[int],
    table: StagedTable | None = None,
) -> list[tuple[int, StagedFile]]:
    """Return pairs of batch id and file, ordered by batch id, table and path."""
    c = staged_files.c
    result: list[tuple[int, StagedFile]] = []
    for ids in _chunks(sorted(batch_ids)):
        wanted = _at(c, pipeline, generation, ids)
        if table is not None:
            wanted.append(c.table_name == table)
        query = select(c.batch_id, c.table_name, c.path, c.size, c.rows, c.action).where(*wanted)
        rows = conn.execute(query.order_by(c.batch_id, c.table_name, c.path))
        result.extend((batch_id, StagedFile(*values)) for batch_id, *values in rows)
    return result


def read_by_runs(conn: Connection, pipeline: str, generation: int, run_ids: Iterable[str]) -> list[Batch]:
    """Return the batches that these runs have read, sorted by id."""
    query = select(batches).where(*_of(batches.c, pipeline, generation), batches.c.run_id.in_(list(run_ids)))
    found = [Batch(**counts.from_columns(row._mapping)) for row in conn.execute(query)]
    return sorted(found, key=lambda batch: batch.batch_id)


def read_files_below(conn: Connection, pipeline: str, generation: int, folder: str) -> list[str]:
    """Return the paths of the recorded files below a folder."""
    c = staged_files.c
    below = c.path.startswith(f"{folder}/", autoescape=True)
    return list(conn.execute(select(c.path).where(*_of(c, pipeline, generation), below)).scalars())


def last_shown(conn: Connection, pipeline: str, generation: int) -> dict[StagedTable, int]:
    """Return, by table, the last batch with rows for it that readers must see there.

    Only the newest batches are looked through, so that it costs the same after any history.
    """
    found = {}
    for table in get_args(StagedTable):
        ids = sorted(_shown(conn, pipeline, generation, table))[-_NEWEST:]
        f = staged_files.c
        query = select(func.max(f.batch_id)).where(
            *_at(f, pipeline, generation, ids),
            f.table_name == table,
            # Spark's own file sink does not say how many rows its files have.
            or_(f.rows > 0, f.action == {}),
        )
        last = conn.execute(query).scalar()
        if last is not None:
            found[table] = last
    return found


def forget_files(
    conn: Connection, pipeline: str, generation: int, table: StagedTable, last_batch: int
) -> None:
    """Forget the files of a table that readers saw of batches after one: an older copy of it lacks them.

    Batches that nobody has seen, as they wait for a verdict or for a person, keep theirs: a publish will need
    them.
    """
    later = _shown(conn, pipeline, generation, table, behind=last_batch)
    for some in _chunks(sorted(later)):
        conn.execute(
            delete(staged_files).where(
                *_at(staged_files.c, pipeline, generation, some), staged_files.c.table_name == table
            )
        )


def _shown(
    conn: Connection, pipeline: str, generation: int, table: StagedTable, behind: int | None = None
) -> Iterator[int]:
    """Yield the batches that readers see in a table: the newest hundred of each status, or all behind one.

    They are published. Those that were published directly are in the output before that, while they wait for
    their verdict.
    """
    c = batches.c
    for status in ("published", *(_VISIBLE_IF_DIRECT if table == "output" else ())):
        query = select(c.batch_id, c.treatment).where(*_of(c, pipeline, generation), c.status == status)
        if behind is None:
            query = query.order_by(c.batch_id.desc()).limit(_NEWEST)
        else:
            query = query.where(c.batch_id > behind)
        for row in conn.execute(query):
            if status == "published" or row.treatment.get("publish") == "direct":
                yield row.batch_id


def _move(conn: Connection, pipeline: str, generation: int, batch_ids: Iterable[int], step: _Step) -> None:
    for some in _chunks(sorted(batch_ids)):
        here = _at(batches.c, pipeline, generation, some)
        rows = conn.execute(select(batches.c.batch_id, batches.c.status).where(*here))
        found = {row.batch_id: row.status for row in rows}
        wrong = {i: found.get(i, "not noted") for i in some if found.get(i) not in (*step.allowed, step.to)}
        if wrong:
            raise _cannot_move(pipeline, generation, wrong, step.to)
        conn.execute(update(batches).where(*here).values(status=step.to))


def _cannot_move(pipeline: str, generation: int, wrong: dict[int, str], to: str) -> RefusedError:
    some = ", ".join(f"{batch_id} is {status}" for batch_id, status in islice(wrong.items(), 3))
    return RefusedError(
        "batch.unjudged" if to == "published" else "batch.published",
        f"{counted(len(wrong), 'batch')} of {pipeline}, generation {generation}, cannot become {to}: {some}",
        where=f"pipeline {pipeline}",
        do=f"see `drawdown runs {pipeline}`; nothing was changed",
    )


def _key(batch: Batch) -> tuple[str, int]:
    return batch.pipeline, batch.generation


def _of(c: Any, pipeline: str, generation: int) -> list[ColumnElement[bool]]:
    return [c.pipeline == pipeline, c.generation == generation]


def _at(c: Any, pipeline: str, generation: int, batch_ids: list[int]) -> list[ColumnElement[bool]]:
    return [*_of(c, pipeline, generation), c.batch_id.in_(batch_ids)]


def _file_row(batch: Batch, file: StagedFile) -> dict[str, Any]:
    return {
        "pipeline": batch.pipeline,
        "generation": batch.generation,
        "batch_id": batch.batch_id,
        "table_name": file.table,
        "path": file.path,
        "size": file.size,
        "rows": file.rows,
        "action": file.action,
    }


def _chunks(ids: list[int]) -> Iterator[list[int]]:
    for start in range(0, len(ids), _IDS_PER_STATEMENT):
        yield ids[start : start + _IDS_PER_STATEMENT]
