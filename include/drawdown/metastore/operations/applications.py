"""Spark applications: recorded when they begin and end, with signs of life while their runs are active."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Engine, func, insert, select, update

from drawdown.metastore.application_shares import requests_of, usages
from drawdown.metastore.clock import read_clock, store_now
from drawdown.metastore.columns import microseconds
from drawdown.metastore.operations.runs import READING
from drawdown.metastore.records import ApplicationRecord, MeasuredRun, RunUsage
from drawdown.metastore.tables import applications, runs


@dataclass(frozen=True)
class Requested:
    """What an application's cluster profile requests: memory in bytes, a price per hour or None."""

    cluster: str
    cores: int
    memory: int
    price: dict[str, str] | None


@dataclass(frozen=True)
class Measured:
    """What an application has used, read at its end; see ApplicationRecord.

    ``task_us``: processor time of the Spark tasks by run id, as far as it is known, microseconds.
    Executors outside the driver add their cores and memory (bytes) to what the profile requests;
    ``executor_us`` is their part of ``cpu_us``. ``requests``: to object stores, by kind.
    """

    start_us: int | None = None
    cpu_us: int = 0
    peak_bytes: int = 0
    task_us: Mapping[str, int] = field(default_factory=dict)
    executor_cores: int = 0
    executor_memory: int = 0
    executor_us: int = 0
    requests: Mapping[str, int] = field(default_factory=dict)


class Applications:
    """The operations, each in one transaction. ``writer`` begins its transactions with the write lock."""

    def __init__(self, engine: Engine, writer: Engine) -> None:
        self._engine = engine
        self._writer = writer

    def begin(self, application_id: str, requested: Requested, age: timedelta) -> None:
        """Record an application that started `age` ago."""
        with self._writer.begin() as conn:
            now = read_clock(conn)
            times = {"started_at": now - age, "seen_at": now}
            values = {"application_id": application_id, **asdict(requested), **times}
            conn.execute(insert(applications).values(values))

    def end(self, application_id: str, measured: Measured) -> None:
        """Record, once, what an application has used, and with each of its runs the run's share."""
        with self._writer.begin() as conn:
            application = _read_one(conn, application_id)
            if application is None or application.ended_at is not None:
                return
            now = read_clock(conn)
            found = conn.execute(
                select(runs.c.run_id, runs.c.started_at, runs.c.ended_at)
                .where(runs.c.application == application_id)
                .order_by(runs.c.run_id)
                .with_for_update()
            ).all()
            values: dict[str, Any] = {
                "cores": application.cores + measured.executor_cores,
                "memory": application.memory + measured.executor_memory,
                "start_us": measured.start_us,
                "cpu_us": measured.cpu_us,
                "peak_bytes": measured.peak_bytes,
            }
            shares = usages(
                replace(application, **values),
                now,
                {row.run_id: (row.started_at, row.ended_at) for row in found},
                measured.cpu_us,
                measured.task_us,
            )
            for run_id, part in requests_of(measured.requests, shares).items():
                shares[run_id]["requests"] = part
            for run_id, usage in shares.items():
                conn.execute(update(runs).where(runs.c.run_id == run_id).values(usage=usage))
            whole = microseconds(now) - microseconds(application.started_at)
            values["idle_us"] = sum(usage["idle_us"] for usage in shares.values()) if shares else whole
            conn.execute(_of(application_id).values(seen_at=now, ended_at=now, **values))

    def since(self, start: datetime) -> tuple[list[ApplicationRecord], list[RunUsage]]:
        """Return applications that began at `start` or later with their runs, and runs without one."""
        with self._engine.begin() as conn:
            found = conn.execute(select(applications).where(applications.c.started_at >= start))
            known = [ApplicationRecord(**row._mapping) for row in found]
            # A run begins later than its application: runs of an earlier application are left out below.
            rows = conn.execute(select(*_USAGE).where(runs.c.started_at >= start))
            ids = {application.application_id for application in known}
            usage = [RunUsage(*row) for row in rows]
        return known, [run for run in usage if run.application is None or run.application in ids]

    def of_pipeline(self, pipeline: str, since: datetime, limit: int) -> list[MeasuredRun]:
        """Return the newest runs of a pipeline that read and began at `since` or later, oldest first."""
        query = (
            select(*_MEASURED, applications.c.cluster)
            .outerjoin(applications, applications.c.application_id == runs.c.application)
            .where(runs.c.pipeline == pipeline, runs.c.started_at >= since, runs.c.kind.in_(READING))
            .order_by(runs.c.started_at.desc(), runs.c.run_id.desc())
            .limit(limit)
        )
        with self._engine.begin() as conn:
            return [MeasuredRun(*row) for row in conn.execute(query)][::-1]

    def first_runs(self) -> dict[str, datetime]:
        """Return for each pipeline the start of its first recorded run."""
        with self._engine.begin() as conn:
            query = select(runs.c.pipeline, func.min(runs.c.started_at)).group_by(runs.c.pipeline)
            return {row.pipeline: row[1] for row in conn.execute(query)}


def heard_of(conn: Connection, run_id: str) -> None:
    """Record a sign of life of the application that a run belongs to."""
    of = select(runs.c.application).where(runs.c.run_id == run_id).scalar_subquery()
    conn.execute(
        update(applications)
        .where(applications.c.application_id == of, applications.c.ended_at.is_(None))
        .values(seen_at=store_now())
    )


_MEASURED = (runs.c.run_id, runs.c.kind, runs.c.state, runs.c.started_at, runs.c.read, runs.c.usage)
_USAGE = (
    runs.c.run_id,
    runs.c.pipeline,
    runs.c.kind,
    runs.c.state,
    runs.c.started_at,
    runs.c.ended_at,
    runs.c.read,
    runs.c.application,
    runs.c.usage,
)


def _of(application_id: str) -> Any:
    return update(applications).where(applications.c.application_id == application_id)


def _read_one(conn: Connection, application_id: str) -> ApplicationRecord | None:
    row = conn.execute(select(applications).where(applications.c.application_id == application_id)).first()
    return None if row is None else ApplicationRecord(**row._mapping)
