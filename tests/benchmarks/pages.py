"""How long pages take with 1,000 pipelines and 100,000 runs: `python -m tests.benchmarks.pages`.

The records are copies of those of one pipeline, with batches, verdicts and progress; each page is asked for
ten times, as the application of Airflow's web server answers it, without the network.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from tests.support.fleet_records import FleetRecords

PIPELINES, RUNS, TIMES = 1_000, 100, 10


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["AIRFLOW_HOME"] = f"{folder}/airflow"
        os.environ["AIRFLOW__CORE__LOAD_EXAMPLES"] = "False"
        os.chdir(folder)
        fill(Path(folder))
        measure()


def fill(root: Path) -> None:
    """Record the history of one pipeline, and copy it."""
    from sqlalchemy import insert, select

    from drawdown.metastore.tables import batches, figures, runs, verdicts
    from tests.support.fleet_records import FleetRecords
    from tests.support.pipeline_history import history

    fleet = FleetRecords(root)
    history(fleet, "p0000")
    fleet.record("p0000")
    with fleet.metastore._writer.begin() as conn:
        run = dict(conn.execute(select(runs).where(runs.c.run_id == "p0000-0")).one()._mapping)
        run["progress"] = [{**run["progress"][0], "batch_id": number} for number in range(20)]
        batch = dict(conn.execute(select(batches).where(batches.c.batch_id == 0)).one()._mapping)
        verdict = dict(conn.execute(select(verdicts).limit(1)).one()._mapping)
        figure = dict(conn.execute(select(figures).where(figures.c.pipeline == "p0000")).one()._mapping)
        del verdict["verdict_id"]
        for number in range(PIPELINES):
            name = f"p{number:04d}"
            conn.execute(
                insert(runs),
                [
                    {
                        **run,
                        "run_id": f"{name}-old-{each}",
                        "pipeline": name,
                        "started_at": run["started_at"] - timedelta(hours=each + 1),
                        "ended_at": run["ended_at"] - timedelta(hours=each + 1),
                    }
                    for each in range(RUNS)
                ],
            )
            if number:
                content = {**figure["content"], "pipeline": name, "dag_id": f"group{number % 10}"}
                content["bars"] = content["bars"] * 10
                conn.execute(insert(figures).values({**figure, "pipeline": name, "content": content}))
                folder = root / "include/pipelines" / name
                folder.mkdir()
                for file in ("pipeline.yaml", "transform.sql", "out.ddl"):
                    text = (root / "include/pipelines/p0000" / file).read_text()
                    (folder / file).write_text(text.replace("p0000", name))
        more = [{**batch, "batch_id": 100 + each, "run_id": f"p0000-old-{each}"} for each in range(RUNS * 10)]
        conn.execute(insert(batches), more)
        conn.execute(insert(verdicts), [{**verdict, "run_id": f"p0000-old-{each}"} for each in range(RUNS)])
    with_calendar(fleet, "revenue")
    fleet.metastore.close()
    set_rows_aside(root)


def with_calendar(fleet: FleetRecords, name: str) -> None:
    """A pipeline with a year of days in 2,000 files, and 300 replays."""
    from tests.support.replayed_days import DAY, day, drained, replayable, replayed

    replayable(fleet, name)
    files = [(day(1) + number * DAY / 6, day(1) + (number + 2) * DAY / 6) for number in range(2_000)]
    drained(fleet, name, *files, watermark=day(330))
    for number in range(300):
        replayed(fleet, name, day(1 + number), day(2 + number))
    fleet.record(name)


def set_rows_aside(root: Path) -> None:
    """Fill the quarantine of the first pipeline: a million rows in 100 files."""
    import pyarrow as pa
    from deltalake import write_deltalake

    from drawdown.sinks.locations import quarantine_uri
    from drawdown.spec import load_pipeline, load_project

    project = load_project(root)
    uri = quarantine_uri(project, load_pipeline(project, "p0000"))
    for batch in range(100):
        rows = range(10_000)
        columns = {
            "source": ["events"] * len(rows),
            "reasons": pa.array([["small"]] * len(rows), pa.list_(pa.string())),
            "payload": [f"a record of some length, {batch}/{row}" for row in rows],
            "generation": pa.array([2] * len(rows), pa.int32()),
            "batch_id": pa.array([batch] * len(rows), pa.int64()),
            "run_id": [f"p0000-{batch}"] * len(rows),
            "set_aside_at": [datetime.now(UTC)] * len(rows),
        }
        write_deltalake(uri, pa.table(columns), mode="append")


def measure() -> None:
    from fastapi.testclient import TestClient

    from drawdown.airflow.pages.access import may_read_runs, readable_dags
    from drawdown.airflow.pages.app import app

    readable = {"p0000", "revenue", *(f"group{number}" for number in range(10))}
    app.dependency_overrides[readable_dags] = lambda: readable
    app.dependency_overrides[may_read_runs] = lambda: None
    client = TestClient(app, root_path="/drawdown")
    run = quote("scheduled__2026-01-31T02:00:00+00:00", safe="")
    own = ("/dags/p0000", "/dags/p0000?runs=100", "/quarantine/p0000/p0000", f"/runs/p0000/{run}")
    pictures = ("/graph", "/graph?around=p0000", "/calendar/revenue")
    for path in ("/fleet", "/decisions", "/dags/group3", *own, *pictures):
        client.get(path).raise_for_status()
        took, used = [], []
        for _ in range(TIMES):
            begun, cpu = time.perf_counter(), time.process_time()
            size = len(client.get(path).content)
            took.append((time.perf_counter() - begun) * 1000)
            used.append((time.process_time() - cpu) * 1000)
        print(
            f"{path:60} median {statistics.median(took):5.0f} ms, CPU {statistics.median(used):5.0f} ms,"
            f" worst {max(took):5.0f} ms, {size:,} bytes"
        )


if __name__ == "__main__":
    main()
