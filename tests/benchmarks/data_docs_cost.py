"""What a run's page of Data Docs costs after 300 runs, beside what it cost after the first pages were full.

    python -m tests.benchmarks.data_docs_cost

Prints the median seconds of ten runs after the first ten, after KEPT and at the end, and the ratio of the
last two; ends with 1 when that is over 1.5 (a page takes milliseconds: the disk's own noise is within that).
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time

from drawdown.quality.data_docs import KEPT, write_docs
from drawdown.storage import Storage
from tests.unit.test_data_docs import verdict

RUNS = 300
BOUND = 1.5


def main() -> int:
    """Measures, prints, and says whether the cost stayed flat (0) or not (1)."""
    seconds = []
    with tempfile.TemporaryDirectory() as folder:
        storage = Storage(folder)
        for at in range(RUNS):
            begun = time.perf_counter()
            write_docs(storage, verdict(at))
            seconds.append(time.perf_counter() - begun)
    early, full, last = (statistics.median(seconds[begin : begin + 10]) for begin in (10, KEPT, RUNS - 10))
    print(f"seconds of a page: after 10 runs {early:.4f}, after {KEPT} {full:.4f}, after {RUNS} {last:.4f}")
    print(f"ratio of the last two {last / full:.2f} (at most {BOUND})")
    return int(last / full > BOUND)


if __name__ == "__main__":
    sys.exit(main())
