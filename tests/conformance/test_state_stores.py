"""STATE: state stores, their settings, and what stays of them after many short runs."""

from __future__ import annotations

import json
from pathlib import PurePosixPath
from typing import Any

import pytest

from drawdown.checkpoint import CheckpointFiles
from drawdown.clusters.local import submit_conf
from drawdown.engine.session import query_session
from drawdown.errors import RefusedError
from drawdown.spec import load_pipeline
from drawdown.storage import Storage
from tests.support.refusals import refused
from tests.support.workspace import Workspace

SPEC = """
sources:
  events: {format: json, path: landing/events, schema: event.ddl}
transform: transform.sql
sink: {format: delta, path: tables/out, schema: out.ddl, mode: complete}
"""
COUNTS = {
    "event_ddl": "k STRING",
    "out_ddl": "k STRING, n BIGINT",
    "transform_sql": "SELECT k, count(*) AS n FROM events GROUP BY k",
}


def _land(workspace: Workspace, number: int, keys: str) -> None:
    workspace.land_json(f"landing/events/{number}.json", [{"k": key} for key in keys])


def _run_twice(workspace: Workspace, name: str) -> list[dict[str, Any]]:
    """Two runs with new data between them, right after each; what the runs say of their stateful operator."""
    operators = []
    for number, (keys, expected) in enumerate(
        [("aab", [("a", 2), ("b", 1)]), ("bc", [("a", 2), ("b", 2), ("c", 1)])]
    ):
        _land(workspace, number, keys)
        run = workspace.run(name)
        operators.append(run.progress[-1]["operators"][0])
        assert workspace.delta("tables/out") == expected
    return operators


def _state_files(workspace: Workspace, name: str) -> set[str]:
    folder = workspace.storage / "_drawdown" / name / "checkpoint-1" / "state"
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.mark.full
@pytest.mark.conformance("STATE-06")
def test_the_hdfs_backed_provider_keeps_state_from_run_to_run(workspace: Workspace) -> None:
    workspace.pipeline("counts", SPEC + "state: {provider: hdfs, partitions: 2}\n", **COUNTS)
    _run_twice(workspace, "counts")
    assert workspace.delta("tables/out") == [("a", 2), ("b", 2), ("c", 1)]
    kept = _state_files(workspace, "counts")
    assert {"0/0/1.delta", "0/1/1.delta", "0/0/2.delta", "0/1/2.delta"} <= kept
    assert [name for name in kept if name.endswith((".zip", ".changelog"))] == []


# The table of Spark's guide, each with a value that is not its default, and where RocksDBConf keeps it.
ROCKSDB = {
    "rocksdb.compactOnCommit": (True, "compactOnCommit"),
    "rocksdb.changelogCheckpointing.enabled": (False, "enableChangelogCheckpointing"),
    "rocksdb.blockSizeKB": (8, "blockSizeKB"),
    "rocksdb.blockCacheSizeMB": (16, "blockCacheSizeMB"),
    "rocksdb.lockAcquireTimeoutMs": (30000, "lockAcquireTimeoutMs"),
    "rocksdb.maxOpenFiles": (100, "maxOpenFiles"),
    "rocksdb.resetStatsOnLoad": (False, "resetStatsOnLoad"),
    "rocksdb.trackTotalNumberOfRows": (True, "trackTotalNumberOfRows"),
    "rocksdb.writeBufferSizeMB": (4, "writeBufferSizeMB"),
    "rocksdb.maxWriteBufferNumber": (3, "maxWriteBufferNumber"),
    "rocksdb.boundedMemoryUsage": (True, "boundedMemoryUsage"),
    "rocksdb.maxMemoryUsageMB": (64, "totalMemoryUsageMB"),
    "rocksdb.writeBufferCacheRatio": (0.4, "writeBufferCacheRatio"),
    "rocksdb.highPriorityPoolRatio": (0.2, "highPriorityPoolRatio"),
    "rocksdb.allowFAllocate": (False, "allowFAllocate"),
    "rocksdb.compression": ("zstd", "compression"),
}
TELLING = """
from pyspark.sql import functions as F

def transform(sources):
    conf = sources["events"].sparkSession.conf
    names = {names}
    settings = [conf.get("spark.sql.streaming.stateStore." + name) for name in names]
    counted = sources["events"].groupBy("k").agg(F.count("*").alias("n"))
    return counted.withColumn("settings", F.array(*map(F.lit, settings)))
"""


def _rocksdb_conf(workspace: Workspace, name: str) -> Any:
    """RocksDBConf, as Spark's state store makes it of the settings of the pipeline's session."""
    assert workspace.spark is not None
    session = query_session(workspace.spark, load_pipeline(workspace.project, name))
    state: Any = session._jvm.org.apache.spark.sql.execution.streaming.state  # type: ignore[union-attr]
    return state.RocksDBConf.apply(state.StateStoreConf.apply(session._jsparkSession.sessionState().conf()))


@pytest.mark.full
@pytest.mark.conformance("STATE-07")
def test_every_option_of_rocksdb_in_the_guide_reaches_the_state_store(workspace: Workspace) -> None:
    given = {name: value for name, (value, _) in ROCKSDB.items()}
    workspace.pipeline(
        "tuned",
        SPEC.replace("transform.sql", "transform.py") + f"state: {json.dumps({'partitions': 2, **given})}\n",
        event_ddl="k STRING",
        out_ddl="k STRING, n BIGINT, settings ARRAY<STRING>",
        transform_py=TELLING.format(names=list(given)),
    )
    in_the_query = [json.dumps(value).strip('"') for value in given.values()]
    for number, counts in enumerate([{"a": 2, "b": 1}, {"a": 2, "b": 2, "c": 1}]):
        _land(workspace, number, ["aab", "bc"][number])
        workspace.run("tuned")
        assert [(k, n, list(s)) for k, n, s in workspace.delta("tables/out")] == [
            (k, n, in_the_query) for k, n in counts.items()
        ]
    conf = _rocksdb_conf(workspace, "tuned")
    assert {name: getattr(conf, field)() for name, (_, field) in ROCKSDB.items()} == given


@pytest.mark.full
@pytest.mark.conformance("STATE-08")
def test_the_memory_of_all_stores_of_a_node_is_bounded(workspace: Workspace) -> None:
    bounds = (
        "rocksdb.boundedMemoryUsage: true, rocksdb.maxMemoryUsageMB: 8, rocksdb.writeBufferCacheRatio: 0.5"
    )
    workspace.pipeline("bounded", SPEC + f"state: {{partitions: 2, {bounds}}}\n", **COUNTS)
    operators = _run_twice(workspace, "bounded")
    assert workspace.delta("tables/out") == [("a", 2), ("b", 2), ("c", 1)]
    conf = _rocksdb_conf(workspace, "bounded")
    assert (conf.boundedMemoryUsage(), conf.totalMemoryUsageMB()) == (True, 8)
    for operator in operators:
        assert 0 < operator["memory_bytes"] <= 8 * 2**20


@pytest.mark.full
@pytest.mark.conformance("STATE-09")
def test_changelog_checkpointing_can_be_switched_between_runs(workspace: Workspace) -> None:
    written = []
    for number, switch in enumerate(["true", "false", "true"]):
        state = f"state: {{partitions: 2, rocksdb.changelogCheckpointing.enabled: {switch}}}\n"
        workspace.pipeline("switching", SPEC + state, **COUNTS)
        before = _state_files(workspace, "switching")
        _land(workspace, number, "aab")
        workspace.run("switching")
        new = _state_files(workspace, "switching") - before
        written.append(
            {PurePosixPath(name).suffix for name in new if "/0/0/" in f"/{name}"} & {".zip", ".changelog"}
        )
        assert workspace.delta("tables/out") == [("a", 2 * (number + 1)), ("b", number + 1)]
    assert ".changelog" in written[0]
    assert written[1] == {".zip"}
    assert ".changelog" in written[2]


@pytest.mark.full
@pytest.mark.conformance("STATE-10")
def test_the_number_of_rows_is_0_where_they_are_not_tracked(workspace: Workspace) -> None:
    # Off is the default: counting costs a look-up with each write.
    workspace.pipeline("untracked", SPEC + "state: {partitions: 2}\n", **COUNTS)
    untracked = _run_twice(workspace, "untracked")
    assert [operator["rows"] for operator in untracked] == [0, 0]
    assert [operator["updated"] for operator in untracked] == [2, 2]

    workspace.pipeline(
        "untracked", SPEC + "state: {partitions: 2, rocksdb.trackTotalNumberOfRows: true}\n", **COUNTS
    )
    _land(workspace, 3, "d")
    run = workspace.run("untracked")
    assert run.progress[-1]["operators"][0]["updated"] == 1
    assert workspace.delta("tables/out") == [("a", 2), ("b", 2), ("c", 1), ("d", 1)]


TWO = """
sources:
  ours: {{format: json, path: landing/ours, schema: event.ddl, watermark: {{column: at, delay: 1 hour}}}}
  theirs: {{format: json, path: landing/theirs, schema: event.ddl, watermark: {{column: at, delay: 1 hour}}}}
transform: transform.sql
sink: {{format: delta, path: tables/out, schema: out.ddl}}
state: {{provider: {provider}, partitions: {partitions}}}
watermark_policy: {policy}
"""
KEPT = {"provider": "rocksdb", "partitions": 2, "policy": "max"}


@pytest.mark.conformance("STATE-11")
def test_what_the_checkpoint_has_fixed_is_refused_with_both_values(workspace: Workspace) -> None:
    files = {
        "event_ddl": "at TIMESTAMP",
        "out_ddl": "hour TIMESTAMP, n BIGINT",
        "transform_sql": "SELECT window.start AS hour, count(*) AS n"
        " FROM (SELECT * FROM ours UNION ALL SELECT * FROM theirs) GROUP BY window(at, '1 hour')",
    }
    workspace.pipeline("fixed", TWO.format(**KEPT), **files)
    workspace.land_json("landing/ours/1.json", [{"at": "2024-01-01T10:00:00Z"}])
    workspace.land_json("landing/theirs/1.json", [{"at": "2024-01-01T10:30:00Z"}])
    workspace.run("fixed")

    workspace.land_json("landing/ours/2.json", [{"at": "2024-01-01T12:30:00Z"}])
    for key, now in [("provider", "hdfs"), ("partitions", 3), ("policy", "min")]:
        workspace.pipeline("fixed", TWO.format(**{**KEPT, key: now}), **files)
        error = refused(workspace, "fixed", "checkpoint.changed", RefusedError)
        assert str(KEPT[key]) in error.what
        assert str(now) in error.what

    workspace.pipeline("fixed", TWO.format(**KEPT), **files)
    workspace.run("fixed")
    assert [n for _, n in workspace.delta("tables/out")] == [2]


@pytest.mark.conformance("STATE-12")
@pytest.mark.parametrize(("given", "partitions"), [("", 4), ("state: {partitions: 3}\n", 3)])
def test_partitions_are_sized_before_the_first_run(workspace: Workspace, given: str, partitions: int) -> None:
    assert workspace.spark is not None
    workspace.spark.conf.set("spark.sql.shuffle.partitions", "200")
    try:
        workspace.pipeline("sized", SPEC + given, **COUNTS)
        _run_twice(workspace, "sized")
    finally:
        workspace.spark.conf.set("spark.sql.shuffle.partitions", "2")
    assert workspace.delta("tables/out") == [("a", 2), ("b", 2), ("c", 1)]
    found = {name.split("/")[1] for name in _state_files(workspace, "sized")}
    assert {name for name in found if name.isdigit()} == {str(number) for number in range(partitions)}
    files = CheckpointFiles(Storage(workspace.project.storage_root), "_drawdown/sized/checkpoint-1")
    assert files.offsets(0).metadata["conf"]["spark.sql.shuffle.partitions"] == str(partitions)


@pytest.mark.conformance("STATE-13")
def test_short_runs_snapshot_and_clean_their_state(workspace: Workspace) -> None:
    # The bounds of 100 batches are narrowed so that ten runs show them; the benchmark has the real ones
    narrow = """
    state: {partitions: 2, minDeltasForSnapshot: 2, rocksdb.compactOnCommit: true}
    conf:
      spark.sql.streaming.minBatchesToRetain: 2
      spark.sql.streaming.ratioExtraSpaceAllowedInCheckpoint: 0
      spark.sql.streaming.fileSource.log.compactInterval: 3
      spark.sql.streaming.fileSource.log.cleanupDelay: 1ms
    """
    workspace.pipeline("short", SPEC + "".join(line[4:] + "\n" for line in narrow.splitlines()), **COUNTS)
    checkpoint = workspace.storage / "_drawdown/short/checkpoint-1"
    counted = []
    for number in range(10):
        _land(workspace, number, "ab")
        workspace.run("short")
        counted.append({log: sum(p.is_file() for p in (checkpoint / log).rglob("*"))
                        for log in ("state", "offsets", "commits", "sources")})  # fmt: skip
    assert workspace.delta("tables/out") == [("a", 10), ("b", 10)]
    snapshots = [name for name in _state_files(workspace, "short") if name.endswith(".zip")]
    assert snapshots, "a run is shorter than the maintenance interval, and yet its state is snapshot"
    # Each number counts a file and its checksum; without cleaning, offsets and commits would have 20.
    bounds = {"state": 44, "offsets": 6, "commits": 6, "sources": 16}
    assert [files for files in counted if any(files[log] > bounds[log] for log in bounds)] == []


@pytest.mark.full
@pytest.mark.conformance("STATE-16")
def test_locality_is_a_setting_of_the_cluster_and_cache_hits_are_in_the_run_record(
    workspace: Workspace,
) -> None:
    path = workspace.root / "include" / "project.yaml"
    path.write_text(path.read_text() + "clusters:\n  local: {conf: {spark.locality.wait: 10s}}\n")
    project = workspace.project
    assert submit_conf(project, project.clusters["local"])["spark.locality.wait"] == "10s"

    workspace.pipeline("counts", SPEC + "state: {provider: hdfs, partitions: 2}\n", **COUNTS)
    first, second = (operator["metrics"] for operator in _run_twice(workspace, "counts"))
    assert workspace.delta("tables/out") == [("a", 2), ("b", 2), ("c", 1)]
    # Each run loads the state that the run before it has left, once a partition.
    assert (first["loadedMapCacheHitCount"], first["loadedMapCacheMissCount"]) == (0, 0)
    assert second["loadedMapCacheMissCount"] == 2
