"""STATE: state stores, their settings, and what stays of them after many short runs."""

from __future__ import annotations

import json
from pathlib import PurePosixPath
from typing import Any

import pytest

from drawdown.checkpoint import CheckpointFiles
from drawdown.errors import RefusedError
from drawdown.launch.local import submit_conf
from drawdown.spark.session import query_session
from drawdown.spec import load_pipeline
from drawdown.storage import Storage
from tests.support.refusals import refused
from tests.support.sandbox import Sandbox

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


def _land(sandbox: Sandbox, number: int, keys: str) -> None:
    sandbox.land_json(f"landing/events/{number}.json", [{"k": key} for key in keys])


def _run_twice(sandbox: Sandbox, name: str) -> list[dict[str, Any]]:
    """Two runs with new data between them, right after each; what the runs say of their stateful operator."""
    operators = []
    for number, (keys, expected) in enumerate(
        [("aab", [("a", 2), ("b", 1)]), ("bc", [("a", 2), ("b", 2), ("c", 1)])]
    ):
        _land(sandbox, number, keys)
        run = sandbox.run(name)
        operators.append(run.progress[-1]["operators"][0])
        assert sandbox.delta("tables/out") == expected
    return operators


def _state_files(sandbox: Sandbox, name: str) -> set[str]:
    folder = sandbox.storage / "_drawdown" / name / "checkpoint-1" / "state"
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.mark.full
@pytest.mark.conformance("STATE-06")
def test_the_hdfs_backed_provider_keeps_state_from_run_to_run(sandbox: Sandbox) -> None:
    sandbox.pipeline("counts", SPEC + "state: {provider: hdfs, partitions: 2}\n", **COUNTS)
    _run_twice(sandbox, "counts")
    assert sandbox.delta("tables/out") == [("a", 2), ("b", 2), ("c", 1)]
    kept = _state_files(sandbox, "counts")
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


def _rocksdb_conf(sandbox: Sandbox, name: str) -> Any:
    """RocksDBConf, as Spark's state store makes it of the settings of the pipeline's session."""
    assert sandbox.spark is not None
    session = query_session(sandbox.spark, load_pipeline(sandbox.project, name))
    state: Any = session._jvm.org.apache.spark.sql.execution.streaming.state  # type: ignore[union-attr]
    return state.RocksDBConf.apply(state.StateStoreConf.apply(session._jsparkSession.sessionState().conf()))


@pytest.mark.full
@pytest.mark.conformance("STATE-07")
def test_every_option_of_rocksdb_in_the_guide_reaches_the_state_store(sandbox: Sandbox) -> None:
    given = {name: value for name, (value, _) in ROCKSDB.items()}
    sandbox.pipeline(
        "tuned",
        SPEC.replace("transform.sql", "transform.py") + f"state: {json.dumps({'partitions': 2, **given})}\n",
        event_ddl="k STRING",
        out_ddl="k STRING, n BIGINT, settings ARRAY<STRING>",
        transform_py=TELLING.format(names=list(given)),
    )
    in_the_query = [json.dumps(value).strip('"') for value in given.values()]
    for number, counts in enumerate([{"a": 2, "b": 1}, {"a": 2, "b": 2, "c": 1}]):
        _land(sandbox, number, ["aab", "bc"][number])
        sandbox.run("tuned")
        assert [(k, n, list(s)) for k, n, s in sandbox.delta("tables/out")] == [
            (k, n, in_the_query) for k, n in counts.items()
        ]
    conf = _rocksdb_conf(sandbox, "tuned")
    assert {name: getattr(conf, field)() for name, (_, field) in ROCKSDB.items()} == given


@pytest.mark.full
@pytest.mark.conformance("STATE-08")
def test_the_memory_of_all_stores_of_a_node_is_bounded(sandbox: Sandbox) -> None:
    bounds = (
        "rocksdb.boundedMemoryUsage: true, rocksdb.maxMemoryUsageMB: 8, rocksdb.writeBufferCacheRatio: 0.5"
    )
    sandbox.pipeline("bounded", SPEC + f"state: {{partitions: 2, {bounds}}}\n", **COUNTS)
    operators = _run_twice(sandbox, "bounded")
    assert sandbox.delta("tables/out") == [("a", 2), ("b", 2), ("c", 1)]
    conf = _rocksdb_conf(sandbox, "bounded")
    assert (conf.boundedMemoryUsage(), conf.totalMemoryUsageMB()) == (True, 8)
    for operator in operators:
        assert 0 < operator["memory_bytes"] <= 8 * 2**20


@pytest.mark.full
@pytest.mark.conformance("STATE-09")
def test_changelog_checkpointing_can_be_switched_between_runs(sandbox: Sandbox) -> None:
    written = []
    for number, switch in enumerate(["true", "false", "true"]):
        state = f"state: {{partitions: 2, rocksdb.changelogCheckpointing.enabled: {switch}}}\n"
        sandbox.pipeline("switching", SPEC + state, **COUNTS)
        before = _state_files(sandbox, "switching")
        _land(sandbox, number, "aab")
        sandbox.run("switching")
        new = _state_files(sandbox, "switching") - before
        written.append(
            {PurePosixPath(name).suffix for name in new if "/0/0/" in f"/{name}"} & {".zip", ".changelog"}
        )
        assert sandbox.delta("tables/out") == [("a", 2 * (number + 1)), ("b", number + 1)]
    assert ".changelog" in written[0]
    assert written[1] == {".zip"}
    assert ".changelog" in written[2]


@pytest.mark.full
@pytest.mark.conformance("STATE-10")
def test_the_number_of_rows_is_unknown_where_they_are_not_tracked(sandbox: Sandbox) -> None:
    # Off is the default: counting costs a look-up with each write.
    sandbox.pipeline("untracked", SPEC + "state: {partitions: 2}\n", **COUNTS)
    untracked = _run_twice(sandbox, "untracked")
    assert [operator["rows"] for operator in untracked] == [None, None]
    assert [operator["updated"] for operator in untracked] == [2, 2]

    sandbox.pipeline(
        "untracked", SPEC + "state: {partitions: 2, rocksdb.trackTotalNumberOfRows: true}\n", **COUNTS
    )
    _land(sandbox, 3, "d")
    run = sandbox.run("untracked")
    assert run.progress[-1]["operators"][0]["updated"] == 1
    assert sandbox.delta("tables/out") == [("a", 2), ("b", 2), ("c", 1), ("d", 1)]


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


@pytest.mark.full
@pytest.mark.conformance("STATE-11")
def test_what_the_checkpoint_has_fixed_is_refused_with_both_values(sandbox: Sandbox) -> None:
    files = {
        "event_ddl": "at TIMESTAMP",
        "out_ddl": "hour TIMESTAMP, n BIGINT",
        "transform_sql": "SELECT window.start AS hour, count(*) AS n"
        " FROM (SELECT * FROM ours UNION ALL SELECT * FROM theirs) GROUP BY window(at, '1 hour')",
    }
    sandbox.pipeline("fixed", TWO.format(**KEPT), **files)
    sandbox.land_json("landing/ours/1.json", [{"at": "2024-01-01T10:00:00Z"}])
    sandbox.land_json("landing/theirs/1.json", [{"at": "2024-01-01T10:30:00Z"}])
    sandbox.run("fixed")

    sandbox.land_json("landing/ours/2.json", [{"at": "2024-01-01T12:30:00Z"}])
    for key, now in [("provider", "hdfs"), ("partitions", 3), ("policy", "min")]:
        sandbox.pipeline("fixed", TWO.format(**{**KEPT, key: now}), **files)
        error = refused(sandbox, "fixed", "checkpoint.changed", RefusedError)
        assert str(KEPT[key]) in error.what
        assert str(now) in error.what

    sandbox.pipeline("fixed", TWO.format(**KEPT), **files)
    sandbox.run("fixed")
    assert [n for _, n in sandbox.delta("tables/out")] == [2]


@pytest.mark.sampled
@pytest.mark.conformance("STATE-12")
@pytest.mark.parametrize(("given", "partitions"), [("", 4), ("state: {partitions: 3}\n", 3)])
def test_partitions_are_sized_before_the_first_run(sandbox: Sandbox, given: str, partitions: int) -> None:
    assert sandbox.spark is not None
    sandbox.spark.conf.set("spark.sql.shuffle.partitions", "200")
    try:
        sandbox.pipeline("sized", SPEC + given, **COUNTS)
        _run_twice(sandbox, "sized")
    finally:
        sandbox.spark.conf.set("spark.sql.shuffle.partitions", "2")
    assert sandbox.delta("tables/out") == [("a", 2), ("b", 2), ("c", 1)]
    found = {name.split("/")[1] for name in _state_files(sandbox, "sized")}
    assert {name for name in found if name.isdigit()} == {str(number) for number in range(partitions)}
    files = CheckpointFiles(Storage(sandbox.project.storage_root), "_drawdown/sized/checkpoint-1")
    assert files.offsets(0).metadata["conf"]["spark.sql.shuffle.partitions"] == str(partitions)


@pytest.mark.full
@pytest.mark.conformance("STATE-13")
def test_short_runs_snapshot_and_clean_their_state(sandbox: Sandbox) -> None:
    # The bounds of 100 batches are narrowed so that ten runs show them; the benchmark has the real ones
    narrow = """
    state: {partitions: 2, minDeltasForSnapshot: 2, rocksdb.compactOnCommit: true}
    conf:
      spark.sql.streaming.minBatchesToRetain: 2
      spark.sql.streaming.ratioExtraSpaceAllowedInCheckpoint: 0
      spark.sql.streaming.fileSource.log.compactInterval: 3
      spark.sql.streaming.fileSource.log.cleanupDelay: 1ms
    """
    sandbox.pipeline("short", SPEC + "".join(line[4:] + "\n" for line in narrow.splitlines()), **COUNTS)
    checkpoint = sandbox.storage / "_drawdown/short/checkpoint-1"
    counted = []
    for number in range(10):
        _land(sandbox, number, "ab")
        sandbox.run("short")
        counted.append({log: sum(p.is_file() for p in (checkpoint / log).rglob("*"))
                        for log in ("state", "offsets", "commits", "sources")})  # fmt: skip
    assert sandbox.delta("tables/out") == [("a", 10), ("b", 10)]
    snapshots = [name for name in _state_files(sandbox, "short") if name.endswith(".zip")]
    assert snapshots, "a run is shorter than the maintenance interval, and yet its state is snapshot"
    # Each number counts a file and its checksum; without cleaning, offsets and commits would have 20.
    bounds = {"state": 44, "offsets": 6, "commits": 6, "sources": 16}
    assert [files for files in counted if any(files[log] > bounds[log] for log in bounds)] == []


@pytest.mark.full
@pytest.mark.conformance("STATE-16")
def test_locality_is_a_setting_of_the_cluster_and_cache_hits_are_in_the_run_record(
    sandbox: Sandbox,
) -> None:
    path = sandbox.root / "include" / "project.yaml"
    path.write_text(path.read_text() + "clusters:\n  local: {conf: {spark.locality.wait: 10s}}\n")
    project = sandbox.project
    assert submit_conf(project, project.clusters["local"])["spark.locality.wait"] == "10s"

    sandbox.pipeline("counts", SPEC + "state: {provider: hdfs, partitions: 2}\n", **COUNTS)
    first, second = (operator["metrics"] for operator in _run_twice(sandbox, "counts"))
    assert sandbox.delta("tables/out") == [("a", 2), ("b", 2), ("c", 1)]
    # Each run loads the state that the run before it has left, once a partition.
    assert (first["loadedMapCacheHitCount"], first["loadedMapCacheMissCount"]) == (0, 0)
    assert second["loadedMapCacheMissCount"] == 2
