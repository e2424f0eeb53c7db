"""Checkpoint generations of a pipeline, and the greatest event time that each of its sources has shown.

One of the generations is in use (live), and at most one is a rebuild's (shadow).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, insert, select, update

from drawdown.errors import RefusedError
from drawdown.metastore.clock import read_clock
from drawdown.metastore.records import FINGERPRINT_FORMAT, Checkpoint, GenerationState, Side
from drawdown.metastore.tables import checkpoints, maxima

_UNDER_WAY: dict[GenerationState, tuple[str, str, str]] = {
    "swapping": ("swap", "approve", "discard"),
    "leaving": ("roll back", "rollback", "approve"),
}
"""Intermediate states, in words, with the command that completes each and the command that undoes it."""


def create(
    conn: Connection, pipeline: str, generation: int, path: str, fingerprint: dict[str, Any], side: Side
) -> Checkpoint:
    """Record a new generation; recording the same again is no error, so a run that died here can be repeated.

    Raises RefusedError checkpoint.exists when the number is taken by another path or fingerprint.
    """
    found = _generation(conn, pipeline, generation)
    if found is None:
        conn.execute(
            insert(checkpoints).values(
                pipeline=pipeline,
                generation=generation,
                path=path,
                fingerprint=fingerprint,
                created_at=read_clock(conn),
                state=side,
                rebuild={},
            )
        )
        return _existing(conn, pipeline, generation)
    if (found.path, found.fingerprint) != (path, fingerprint):
        raise RefusedError(
            "checkpoint.exists",
            f"generation {generation} of {pipeline} exists already, at {found.path}",
            where=f"pipeline {pipeline}",
            do=f"see `drawdown checkpoint show {pipeline}`",
        )
    return found


def set_query_id(conn: Connection, pipeline: str, generation: int, query_id: str) -> None:
    """Record Spark's query id of a generation, once.

    Raises RefusedError checkpoint.query-changed when another id is recorded: then the files under the
    checkpoint's path are not those that the metastore and the sink know.
    """
    found = _existing(conn, pipeline, generation)
    if found.query_id not in (None, query_id):
        raise RefusedError(
            "checkpoint.query-changed",
            f"the checkpoint of {pipeline} has query id {query_id}, it was {found.query_id}",
            where=found.path,
            do=f"`drawdown checkpoint verify {pipeline}` names the command that puts its own files back",
        )
    conn.execute(
        update(checkpoints)
        .where(checkpoints.c.pipeline == pipeline, checkpoints.c.generation == generation)
        .values(query_id=query_id)
    )


def update_fingerprint(conn: Connection, pipeline: str, generation: int, fingerprint: dict[str, Any]) -> None:
    """Replace a generation's fingerprint. Raises LookupError when the generation does not exist."""
    change(conn, pipeline, generation, fingerprint=fingerprint)


def note_judging(conn: Connection, pipeline: str, generation: int, judging: dict[str, Any]) -> None:
    """Note how the rows of the next batches are judged, before one of them is planned."""
    change(conn, pipeline, generation, judging=judging)


def note_begun(conn: Connection, pipeline: str, generation: int, batch_id: int | None) -> None:
    """Note which batch is handed to a sink that cannot say what it holds; None if the sink has refused it."""
    change(conn, pipeline, generation, begun_batch=batch_id)


def active(conn: Connection, pipeline: str, side: Side) -> Checkpoint | None:
    """Return the generation in use, or the one of a rebuild.

    Raises RefusedError checkpoint.newer-format; and rebuild.unfinished while a swap or a roll back is
    incomplete: then only the table's log, which `rebuild approve` reads, shows which generation it holds.
    """
    found = read(conn, pipeline)
    for each in found:
        if each.state in _UNDER_WAY:
            what, on, back = _UNDER_WAY[each.state]
            raise RefusedError(
                "rebuild.unfinished",
                f"a {what} of {pipeline}, generation {each.generation}, was cut off",
                where=f"pipeline {pipeline}",
                do=f"`drawdown rebuild {on} {pipeline} --why ...` completes it; or, if that is impossible,"
                f" `drawdown rebuild {back} {pipeline} --why ...` undoes it",
            )
    chosen = next((each for each in found if each.state == side), None)
    if chosen is not None and chosen.fingerprint.get("format", 0) > FINGERPRINT_FORMAT:
        raise RefusedError(
            "checkpoint.newer-format",
            f"a newer Drawdown has written the record of the checkpoint of {pipeline} (format"
            f" {chosen.fingerprint['format']}; this one supports up to {FINGERPRINT_FORMAT})",
            where=f"pipeline {pipeline}, generation {chosen.generation}",
            do="upgrade drawdown on this machine; to go back permanently, let the newer one restore a"
            f" snapshot from before the upgrade: `drawdown checkpoint restore {pipeline} SNAPSHOT`",
        )
    return chosen


def read(conn: Connection, pipeline: str) -> list[Checkpoint]:
    """Return all generations that ever existed, oldest first."""
    rows = conn.execute(
        select(checkpoints).where(checkpoints.c.pipeline == pipeline).order_by(checkpoints.c.generation)
    )
    return [Checkpoint(**row._mapping) for row in rows]


def change(conn: Connection, pipeline: str, generation: int, **values: Any) -> None:
    """Change columns of a generation's record."""
    _existing(conn, pipeline, generation)
    conn.execute(
        update(checkpoints)
        .where(checkpoints.c.pipeline == pipeline, checkpoints.c.generation == generation)
        .values(**values)
    )


def _generation(conn: Connection, pipeline: str, generation: int) -> Checkpoint | None:
    row = conn.execute(
        select(checkpoints).where(checkpoints.c.pipeline == pipeline, checkpoints.c.generation == generation)
    ).one_or_none()
    return None if row is None else Checkpoint(**row._mapping)


def _existing(conn: Connection, pipeline: str, generation: int) -> Checkpoint:
    found = _generation(conn, pipeline, generation)
    if found is None:
        raise LookupError(f"{pipeline} has no checkpoint generation {generation}")
    return found


def read_maxima(conn: Connection, pipeline: str, generation: int) -> dict[str, datetime]:
    """Return the greatest event time that each source has shown, by source name."""
    rows = conn.execute(
        select(maxima.c.source, maxima.c.event_time).where(
            maxima.c.pipeline == pipeline, maxima.c.generation == generation
        )
    )
    return {row.source: row.event_time for row in rows}


def raise_maxima(conn: Connection, pipeline: str, generation: int, shown: Mapping[str, datetime]) -> None:
    """Raise each source's maximum to what a batch showed; a smaller time does not change it."""
    known = read_maxima(conn, pipeline, generation)
    for source, event_time in shown.items():
        if source not in known:
            conn.execute(
                insert(maxima).values(
                    pipeline=pipeline, generation=generation, source=source, event_time=event_time
                )
            )
        elif event_time > known[source]:
            conn.execute(
                update(maxima)
                .where(
                    maxima.c.pipeline == pipeline,
                    maxima.c.generation == generation,
                    maxima.c.source == source,
                )
                .values(event_time=event_time)
            )
