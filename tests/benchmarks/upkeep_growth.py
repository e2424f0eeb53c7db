"""1,000 runs with upkeep once a day, four runs a day: what is there after 10, 100 and 1,000 of them.

    python -m tests.benchmarks.upkeep_growth [RUNS] [--without]

Not drained by Spark, which would take hours: each run notes its batch, is judged and published by the same
functions as a drain's, over a file and the logs of a checkpoint that are written here; a day goes by by
setting the times of files and records back. Prints files and bytes of the table and of all else below the
storage root, and records of the metastore; ``--without``: the same without upkeep.
"""

from __future__ import annotations

import json
import sys
import tempfile
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from sqlalchemy import func, select

from drawdown.delta.table import DeltaTableFiles
from drawdown.metastore import Metastore
from drawdown.metastore.records import Batch, Counts, Lease, Run, StagedFile, Verdict
from drawdown.metastore.tables import metadata
from drawdown.publishing import publish_passed
from drawdown.sinks.locations import output_uri
from drawdown.spec import Pipeline
from drawdown.workspace import Generation, Workspace
from tests.support.ageing import grow_old
from tests.support.sandbox import Sandbox
from tests.support.tidying import tidied

NAME = "events"
A_DAY = 4
TTL = timedelta(hours=1)
SPEC = """
sources:
  events: {format: json, path: landing/events, schema: event.ddl}
transform: transform.sql
sink: {format: delta, path: tables/events, schema: event.ddl}
"""
_SCHEMA = {
    "type": "struct",
    "fields": [{"name": "id", "type": "long", "nullable": True, "metadata": {}}],
}


@dataclass(frozen=True)
class Size:
    """What there is after so many runs."""

    runs: int
    data_files: int
    table_files: int
    table_bytes: int
    other_files: int
    records: int

    def __str__(self) -> str:
        return (
            f"{self.runs:5} runs: table {self.table_files:5,} files ({self.data_files:,} with rows)"
            f" {self.table_bytes:9,} bytes;"
            f" other files {self.other_files:5,}; records {self.records:5,}"
        )


def growth(
    root: Path, runs: int, *, a_day: int = A_DAY, upkeep: bool = True, more: str = ""
) -> Iterator[Size]:
    """The size after each day."""
    sandbox = Sandbox(root, more=more)
    pipeline = sandbox.pipeline(NAME, SPEC, event_ddl="id BIGINT", transform_sql="SELECT * FROM events")
    with sandbox.metastore() as metastore:
        _begin(sandbox, metastore, pipeline)
        for number in range(runs):
            _run(sandbox, metastore, pipeline, number)
            if number % a_day == a_day - 1:
                grow_old(sandbox, timedelta(days=1))
                if upkeep:
                    tidied(sandbox, NAME)
                yield _size(sandbox, metastore, number + 1)


def _begin(sandbox: Sandbox, metastore: Metastore, pipeline: Pipeline) -> None:
    table = DeltaTableFiles(output_uri(sandbox.project, pipeline))
    table.create(json.dumps(_SCHEMA), [], "events")
    lease = metastore.acquire(NAME, "simulated", "first", TTL)
    known = {"sink.identity": table.table_id, "source_order": ["events"]}
    metastore.create_checkpoint(lease, 1, f"_drawdown/{NAME}/checkpoint-1", known)
    metastore.release(lease)
    _write(sandbox, "metadata", json.dumps({"id": str(uuid.uuid4())}))


def _run(sandbox: Sandbox, metastore: Metastore, pipeline: Pipeline, number: int) -> None:
    run_id = f"run-{number:06}"
    lease = metastore.acquire(NAME, "simulated", run_id, TTL)
    metastore.start_run(Run(run_id, NAME, generation=1, holder="simulated"))
    _write(sandbox, f"offsets/{number}", "v1\n{}\n" + json.dumps({"logOffset": number}))
    _read(sandbox, number)
    _stage(sandbox, metastore, lease, number)
    _write(sandbox, f"commits/{number}", "v1\n" + json.dumps({"nextBatchWatermarkMs": 0}))
    metastore.mark_committed(lease, 1, number)
    metastore.record_verdict(lease, Verdict(NAME, 1, run_id, number, number, "pass"))
    done = publish_passed(Generation.of(Workspace(sandbox.project, metastore), pipeline), lease)
    metastore.finish_run(run_id, "succeeded", batches=1, counts=Counts(published=done.rows))
    metastore.release(lease)


def _read(sandbox: Sandbox, number: int) -> None:
    """The log of the files that were read, which Spark rewrites as one entry at each tenth batch."""
    is_whole = number % 10 == 9
    files = [f"landing/events/{each}.json" for each in range(0 if is_whole else number, number + 1)]
    entries = [json.dumps({"path": file, "timestamp": 0, "batchId": number}) for file in files]
    _write(sandbox, f"sources/0/{number}{'.compact' if is_whole else ''}", "\n".join(["v1", *entries]))
    if is_whole:
        folder = sandbox.storage / "_drawdown" / NAME / "checkpoint-1" / "sources/0"
        for earlier in (each for each in folder.iterdir() if each.name != f"{number}.compact"):
            earlier.unlink()


def _stage(sandbox: Sandbox, metastore: Metastore, lease: Lease, number: int) -> None:
    path = sandbox.storage / "tables/events" / f"part-{number:06}-{uuid.uuid4()}.parquet"
    pq.write_table(pa.table({"id": [number]}), path)
    info = path.stat()
    action = {
        "path": path.name,
        "size": info.st_size,
        "modificationTime": info.st_mtime_ns // 1_000_000,
        "stats": json.dumps({"numRecords": 1}),
    }
    counts = Counts(read=1, fed=1, staged=1)
    batch = Batch(NAME, 1, number, lease.run_id, lease.epoch, counts=counts)
    metastore.note_batch(lease, batch, [StagedFile("output", str(path), info.st_size, 1, action)], {})


def _write(sandbox: Sandbox, name: str, text: str) -> None:
    path = sandbox.storage / "_drawdown" / NAME / "checkpoint-1" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _size(sandbox: Sandbox, metastore: Metastore, runs: int) -> Size:
    sizes: Counter[str] = Counter()
    for path, (size, _) in sandbox.snapshot().items():
        where = "table" if path.startswith("tables/") else "other"
        sizes[f"{where} files"] += 1
        sizes[f"{where} bytes"] += size
        sizes["data"] += (
            path.startswith("tables/") and path.endswith(".parquet") and "/_delta_log/" not in path
        )
    with metastore._engine.begin() as conn:
        records = sum(
            conn.execute(select(func.count()).select_from(table)).scalar_one()
            for table in metadata.tables.values()
        )
    return Size(
        runs, sizes["data"], sizes["table files"], sizes["table bytes"], sizes["other files"], records
    )


def main(runs: int, upkeep: bool) -> int:
    with tempfile.TemporaryDirectory() as folder:
        for size in growth(Path(folder) / "project", runs, upkeep=upkeep):
            if size.runs in (12, 100, 200, 400, 600, 800, runs):
                print(size, flush=True)
    return 0


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:] if word.isdigit()]
    sys.exit(main(numbers[0] if numbers else 1_000, "--without" not in sys.argv))
