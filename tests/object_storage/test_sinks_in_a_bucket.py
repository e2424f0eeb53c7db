"""What sinks show in a bucket: Spark's own file sink with its log, and Delta in every mode."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from tests.support.bucket_sandbox import PREFIX, BucketSandbox
from tests.support.command_line import answer, drawdown
from tests.support.recovering import command_of
from tests.support.sandbox import multiset
from tests.support.typed import typed

NAME = "sums"
TO_FILES = """
sources:
  events: {format: json, path: landing/events, schema: events.ddl, options: {maxFilesPerTrigger: 1}}
  names: {format: csv, path: reference/names, schema: names.ddl, static: true, options: {header: true}}
transform: transform.sql
sink: {format: FORMAT, path: tables/named, schema: named.ddl, publish: direct}
state: {partitions: 2}
"""
FILES = {
    "events_ddl": "id INT, k STRING, n INT",
    "names_ddl": "id INT, name STRING",
    "named_ddl": "id INT, n INT, name STRING",
    "transform_sql": "SELECT e.id, e.n, n.name FROM events e LEFT JOIN names n ON e.id = n.id",
}
TO_DELTA = """
sources:
  events: {format: json, path: landing/events, schema: events.ddl}
transform: transform.sql
sink: {format: delta, path: tables/sums, schema: sums.ddl, SINK}
state: {partitions: 2}
"""
SUMS = {
    "events_ddl": FILES["events_ddl"],
    "sums_ddl": "k STRING, total BIGINT",
    "transform_sql": "SELECT k, sum(n) AS total FROM events GROUP BY k",
}
UPDATE = "mode: update, keys: [k], publish: audited"
COMPLETE = "mode: complete, publish: audited"


@pytest.mark.capability("OBJ-03")
@pytest.mark.parametrize(
    "format", ["parquet", *(pytest.param(f, marks=pytest.mark.full) for f in ("json", "orc"))]
)
def test_a_file_sink_shows_what_its_log_names(lake: BucketSandbox, format: str) -> None:
    lake.pipeline(NAME, TO_FILES.replace("FORMAT", format), **FILES)
    lake.land("reference/names/n.csv", ["id,name", *[f"{i},n{i}" for i in range(8)]])
    for wave in range(3):
        _land(lake, wave)
        run = lake.run(NAME)
        assert (run.counts.read, run.counts.staged, run.counts.published) == (4, 4, 4)
        assert _shown(lake, format) == Counter(
            (row["id"], row["n"], f"n{row['id']}") for row in lake.json_rows("landing/events")
        )
    assert "tables/named/_spark_metadata/2" in lake.keys("tables/named/_spark_metadata")
    # A task that died has left a file that no entry of the log names.
    lake.client.put(f"{PREFIX}/tables/named/part-left.snappy.{format}", b"half a file")
    assert sum(_shown(lake, format).values()) == 12


@pytest.mark.capability("OBJ-03")
@pytest.mark.full
def test_twelve_batches_go_over_a_compaction_of_the_sinks_log(lake: BucketSandbox) -> None:
    lake.pipeline(NAME, TO_FILES.replace("FORMAT", "parquet"), **FILES)
    lake.land("reference/names/n.csv", ["id,name", *[f"{i},n{i}" for i in range(8)]])
    for wave in range(12):
        _land(lake, wave)
    run = lake.run(NAME)
    assert (run.batches, run.counts.published) == (12, 48)
    assert "tables/named/_spark_metadata/9.compact" in lake.keys("tables/named/_spark_metadata")
    expected = Counter((r["id"], r["n"], f"n{r['id']}") for r in lake.json_rows("landing/events"))
    assert _shown(lake, "parquet") == expected
    _land(lake, 12)
    assert lake.run(NAME).counts.published == 4
    assert sum(_shown(lake, "parquet").values()) == 52


@pytest.mark.capability("OBJ-03")
@pytest.mark.full
def test_a_torn_entry_of_the_sinks_log_is_written_again(
    lake: BucketSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(lake.root)
    spec = TO_FILES.replace("FORMAT", "parquet").replace(
        "publish: direct", "publish: direct, partition_by: [name]"
    )
    lake.pipeline(NAME, spec, **{**FILES, "named_ddl": "id INT, n INT, name STRING"})
    lake.land("reference/names/n.csv", ["id,name", *[f"{i},n %{i}é" for i in range(8)]])
    for wave in range(3):
        _land(lake, wave)
        lake.run(NAME)
    expected = Counter((r["id"], r["n"], f"n %{r['id']}é") for r in lake.json_rows("landing/events"))
    key = f"{PREFIX}/tables/named/_spark_metadata/2"
    whole = lake.client.get(key)
    lake.client.put(key, whole[: len(whole) // 2])
    found = drawdown(lake.root, "checkpoint", "verify", NAME, "--json")
    assert found.returncode == 3, found.stdout + found.stderr
    typed(*command_of(answer(found.stdout)["do"]))
    assert lake.client.get(key) == whole, "as Spark had written it"
    assert _shown(lake, "parquet") == expected
    _land(lake, 3)
    lake.run(NAME)
    assert sum(_shown(lake, "parquet").values()) == 16


@pytest.mark.capability("OBJ-04")
@pytest.mark.full
def test_a_table_is_streamed_by_its_name(lake: BucketSandbox) -> None:
    table = f"sums_in_{lake.bucket.replace('-', '_')}"
    first = TO_DELTA.replace("SINK", f"table: {table}, publish: audited")
    rows = {"events_ddl": SUMS["events_ddl"], "sums_ddl": "id INT, k STRING, n INT"}
    lake.pipeline(NAME, first, **rows, transform_sql="SELECT * FROM events")
    second = TO_DELTA.replace("SINK", "publish: audited").replace("tables/sums", "tables/copies")
    second = second.replace(
        "{format: json, path: landing/events, schema: events.ddl}", f"{{format: table, table: {table}}}"
    )
    lake.pipeline("copies", second, sums_ddl=rows["sums_ddl"], transform_sql="SELECT * FROM events")
    for wave in range(2):
        _land(lake, wave)
        lake.run(NAME)
        assert lake.run("copies").counts.read == 4
    expected = Counter((r["id"], r["k"], r["n"]) for r in lake.json_rows("landing/events"))
    assert multiset(lake.delta("tables/copies")) == multiset(lake.delta("tables/sums")) == expected


@pytest.mark.capability("OBJ-04")
@pytest.mark.parametrize("sink", [UPDATE, pytest.param(COMPLETE, marks=pytest.mark.full)])
def test_a_table_holds_the_sums_of_all_runs(lake: BucketSandbox, sink: str) -> None:
    lake.pipeline(NAME, TO_DELTA.replace("SINK", sink), **SUMS)
    for wave in range(3):
        _land(lake, wave)
        assert lake.run(NAME).verdict == "pass"
        total: Counter[str] = Counter()
        for row in lake.json_rows("landing/events"):
            total[row["k"]] += row["n"]
        assert multiset(lake.delta("tables/sums")) == multiset(total.items())
    commits = [str(entry.get("engineInfo", entry.get("clientVersion", ""))) for entry in _history(lake)]
    assert commits
    assert not any("Apache-Spark" in each for each in commits), "published without Spark"


@pytest.mark.capability("OBJ-04")
@pytest.mark.full
def test_appended_files_are_published_where_they_were_staged(lake: BucketSandbox) -> None:
    """With partitions whose values need escapes in a path, and in a key."""
    spec = TO_DELTA.replace("SINK", "partition_by: [k], publish: audited")
    lake.pipeline(
        NAME, spec, events_ddl=SUMS["events_ddl"], sums_ddl="id INT, k STRING, n INT",
        transform_sql="SELECT * FROM events",
    )  # fmt: skip
    keys = ["a b", "é/ü", "50%", "x=y", "+plus", "", None]
    rows = [{"id": i, "k": key, "n": 1} for i, key in enumerate(keys)]
    for wave in range(2):
        lake.land_json(f"landing/events/{wave}.json", rows)
        staged_before = set(lake.keys("tables/sums"))
        assert lake.run(NAME).counts.published == len(rows)
        assert staged_before < set(lake.keys("tables/sums"))
        # A partition's empty string is NULL in Spark's and Delta's tables.
        expected = Counter((row["id"], row["k"] or None, 1) for row in lake.json_rows("landing/events"))
        assert multiset(lake.delta("tables/sums")) == expected


def _land(lake: BucketSandbox, wave: int) -> None:
    rows = [{"id": (wave + i) % 8, "k": "abc"[(wave + i) % 3], "n": wave * 10 + i} for i in range(3)]
    lake.land_json(f"landing/events/{wave:02}.json", [*rows, rows[0]])


def _shown(lake: BucketSandbox, format: str) -> Counter[tuple[Any, ...]]:
    """What Spark readers of the folder see."""
    assert lake.spark is not None
    folder = lake.address.replace("s3://", "s3a://") + "/tables/named"
    frame = lake.spark.read.format(format).schema(FILES["named_ddl"]).load(folder)
    return multiset(tuple(row) for row in frame.collect())


def _history(lake: BucketSandbox) -> list[dict[str, Any]]:
    return [dict(json.loads(json.dumps(entry, default=str))) for entry in lake.table("tables/sums").history()]
