"""Standalone clusters that the product has spun up: what is left of them, and their executors."""

from __future__ import annotations

from pathlib import Path

from drawdown.launch.standalone.cluster_folder import MARK, clusters_dir
from tests.support.waiting import until

_ONLY_THERE = """
def transform(sources):
    events = sources["events"]
    master = events.sparkSession.sparkContext.master
    if not master.startswith("spark://127.0.0.1:"):
        raise ValueError(f"this application has no cluster: {{master}}")
    return events.selectExpr({columns})
"""
EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"


def processes(root: Path) -> dict[int, str]:
    """Command lines of all processes of a project's clusters by process id, whoever their parent is."""
    mark = f"{MARK}={clusters_dir(root / '.drawdown')}/".encode()
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (folder / "environ").read_bytes():
                found[int(folder.name)] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
    return found


def executors(root: Path) -> list[int]:
    """Process ids of the executors that run on a project's clusters now."""
    return sorted(pid for pid, command in processes(root).items() if EXECUTOR in command)


def daemons(root: Path, kind: str) -> list[int]:
    """Process ids of the daemons of a kind, `Master` or `Worker`, without the programs that start them."""
    return sorted(
        pid
        for pid, command in processes(root).items()
        if f".{kind} " in command and "spark-class" not in command and "launcher.Main" not in command
    )


def folders(root: Path) -> list[Path]:
    there = clusters_dir(root / ".drawdown")
    return sorted(there.iterdir()) if there.is_dir() else []


def until_nothing_is_left(root: Path) -> None:
    """No process, and no folder."""
    until(lambda: not processes(root), 120)
    assert folders(root) == []


def transform_only_there(folder: Path, *columns: str) -> None:
    """Give a pipeline a transform of these SQL expressions that fails where Spark's master is no cluster."""
    spec = folder / "pipeline.yaml"
    spec.write_text(spec.read_text().replace("transform.sql", "transform.py"))
    (folder / "transform.py").write_text(_ONLY_THERE.format(columns=", ".join(map(repr, columns))))
