"""100 short runs of a stateful pipeline: what its checkpoint grows to, and whether runs get slower.

    python -m tests.benchmarks.state_growth [RUNS]

Real drains with the product's defaults, one after another, each in a session of its own with new data. Prints
files and bytes per part of the checkpoint every ten runs, and the median seconds of the last ten runs against
those of the first ten after a warm-up; ends with 1 when that ratio is over 1.15.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

from tests.support.spark import start_session
from tests.support.workspace import Workspace

PARTS = ("state", "offsets", "commits", "sources")
WARM_UP = 10
SPEC = """
sources:
  events: {format: json, path: landing/events, schema: event.ddl, watermark: {column: at, delay: 1 hour}}
transform: transform.sql
sink: {format: delta, path: tables/out, schema: out.ddl}
"""


def main(runs: int) -> int:
    """Runs, prints, and says whether the time stayed flat (0) or not (1)."""
    with tempfile.TemporaryDirectory() as folder:
        spark = start_session()
        workspace = Workspace(Path(folder) / "project", spark)
        try:
            seconds = [_run(workspace, number) for number in range(runs)]
        finally:
            spark.stop()
    first = statistics.median(seconds[WARM_UP : WARM_UP + 10])
    last = statistics.median(seconds[-10:])
    ratio = last / first
    print(f"seconds of a run: first ten after warm-up {first:.2f}, last ten {last:.2f}, ratio {ratio:.2f}")
    return int(ratio > 1.15)


def _run(workspace: Workspace, number: int) -> float:
    """One run over an hour of events of 50 keys; seconds from its start to its end."""
    if number == 0:
        workspace.pipeline(
            "short",
            SPEC,
            event_ddl="at TIMESTAMP, k INT",
            out_ddl="hour TIMESTAMP, k INT, n BIGINT",
            transform_sql="SELECT window.start AS hour, k, count(*) AS n"
            " FROM events GROUP BY window(at, '1 hour'), k",
        )
    day, hour = divmod(number, 24)
    at = f"2024-01-{day + 1:02}T{hour:02}:30:00Z"
    workspace.land_json(f"landing/events/{number}.json", [{"at": at, "k": k % 50} for k in range(200)])
    begun = time.monotonic()
    workspace.run("short")
    took = time.monotonic() - begun
    if number % 10 == 9:
        checkpoint = workspace.storage / "_drawdown/short/checkpoint-1"
        said = [f"{part} {_size(checkpoint / part)}" for part in PARTS]
        print(f"after {number + 1:3} runs, seconds {took:.2f}: {'; '.join(said)}", flush=True)
    return took


def _size(folder: Path) -> str:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return f"{len(files)} files {sum(path.stat().st_size for path in files):,} bytes"


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100))
