"""All benchmarks, or those that are named, one after another; then docs/performance.md.

    python -m tests.benchmarks [NAME ...]

Ends with 1 when one of them failed, or found something that is not as wanted.
"""

from __future__ import annotations

import subprocess
import sys

from tests.benchmarks.page import write_page

BENCHMARKS = (
    "small_runs",
    "large_runs",
    "batches",
    "many_runs",
    "audit",
    "groups",
    "parse",
    "publish",
    "kafka_sink",
    "other_engines",
)


def main(names: list[str]) -> int:
    code = 0
    for name in names:
        print(f"{name}:", flush=True)
        code |= subprocess.call([sys.executable, "-m", f"tests.benchmarks.{name}"])
    write_page()
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or list(BENCHMARKS)))
