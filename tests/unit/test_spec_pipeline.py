"""pipeline.yaml: what is right loads whole, what is wrong is one error at the line of the key."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from drawdown.errors import SpecError
from drawdown.spec import Pipeline
from tests.support.spec_folders import PIPELINE, QUALITY, SpecFolders, line_of

OPTIONS = "options: {header: true, maxFilesPerTrigger: 20}"
KAFKA = "format: kafka\n    schema: schemas/departures.ddl\n    "
SOURCE = "format: csv\n    path: landing/departures\n    schema: schemas/departures.ddl\n    " + OPTIONS


@pytest.fixture
def folders(tmp_path: Path) -> SpecFolders:
    return SpecFolders(tmp_path)


def test_everything_the_design_shows_is_read(folders: SpecFolders) -> None:
    folder = folders.add(quality=QUALITY)
    pipeline = folders.load()
    assert (pipeline.name, pipeline.folder) == ("hourly", folder)
    assert pipeline.schedule == "5 * * * *"
    assert list(pipeline.streaming_sources) == list(pipeline.watermarked_sources) == ["departures"]
    assert list(pipeline.static_sources) == ["airports"]
    assert pipeline.sources["departures"].options == {"header": True, "maxFilesPerTrigger": 20}
    watermark = pipeline.sources["departures"].watermark
    assert watermark is not None
    assert watermark.delay.delta == timedelta(hours=2)
    assert watermark.max_future is not None
    assert watermark.max_future.text == "1 day"
    assert pipeline.source_schema_ddl("departures") == pipeline.sink_schema_ddl
    assert pipeline.sink_schema_ddl == "origin STRING, hour TIMESTAMP"
    assert pipeline.transform_text == "SELECT * FROM departures"
    assert pipeline.state.options == {"rocksdb.changelogCheckpointing.enabled": True}
    assert pipeline.drain.max_batches is None
    assert [rule.name for rule in pipeline.rules_of("departures")] == ["has_origin"]
    assert pipeline.asset_name == "drawdown.hourly"


def test_a_short_spec_gets_the_defaults(folders: SpecFolders) -> None:
    folders.add(
        pipeline="sources:\n  a: {format: text, path: landing}\n"
        "sink: {format: delta, path: tables/a, schema: schemas/hourly.ddl}\n"
    )
    pipeline = folders.load()
    assert pipeline.schedule is None
    assert (pipeline.state.provider, pipeline.state.partitions) == ("rocksdb", 4)
    assert (pipeline.sink.publish, pipeline.sink.mode) == ("audited", "append")
    assert pipeline.quality.rules == []


@pytest.mark.parametrize(
    ("sink", "why"),
    [
        ("mode: update, keys: [origin]", "would overwrite later ones"),
        ("mode: complete", "would overwrite later ones"),
        ("publish: direct", "does not hold slices"),
    ],
)
def test_out_of_order_is_refused_where_a_late_release_would_be_wrong(
    folders: SpecFolders, sink: str, why: str
) -> None:
    folders.add(
        pipeline="sources:\n  a: {format: text, path: landing}\n"
        f"sink: {{format: delta, path: tables/a, schema: schemas/hourly.ddl, ordered: false, {sink}}}\n"
    )
    with pytest.raises(SpecError, match=why):
        folders.load()


def test_a_file_sink_is_published_direct_without_saying_so(folders: SpecFolders) -> None:
    folders.add(
        pipeline="sources:\n  a: {format: text, path: landing}\nsink: {format: parquet, path: tables/a}\n"
    )
    assert folders.load().sink.publish == "direct"


@pytest.mark.parametrize(
    ("old", "new", "id", "at", "says"),
    [
        ("owner:", "ownr:", "spec.unknown-key", "ownr", "'owner'"),
        ("    path: landing", "    pth: landing", "spec.unknown-key", "pth: landing", "'path'"),
        ("time_column", "time_colum", "spec.unknown-key", "time_colum", "'time_column'"),
        ("delay: 2 hours, max_future", "delay: 2 hours, max_futur", "spec.unknown-key", "max_futur",
         "max_future"),
        ("maxFilesPerTrigger", "maxFilesPerTriger", "spec.unknown-option", "maxFilesPerTriger",
         "maxFilesPerTrigger"),
        ("header: true", "mode: DROPMALFORMED", "spec.unknown-option", "mode: DROP", "malformed"),
        ("header: true", "maxBytesPerTrigger: 10m", "spec.contradiction", "maxBytes", "both"),
        ("changelogCheckpointing", "changelogCheckpoint", "spec.unknown-option", "changelogCheckpoint",
         "changelogCheckpointing"),
        ("provider: rocksdb", "provider: hdfs", "spec.unknown-option", "rocksdb.change", "no effect"),
        ("cluster: local", "conf: {spark.sql.streaming.minBatchToRetain: 5}", "spec.unknown-option",
         "minBatchToRetain", "minBatchesToRetain"),
        ("cluster: local", "conf: {spark.sql.shuffle.partitions: 5}", "spec.unknown-option",
         "spark.sql.shuffle.partitions", "state.partitions"),
        ("cluster: local", "conf: {spark.locality.wait: 5s}", "spec.unknown-option", "spark.locality.wait",
         "cluster profile"),
        ("cluster: local", "conf: {spark.sql.streaming.stateStore.minDeltasForSnapshot: 5}",
         "spec.unknown-option", "minDeltasForSnapshot", "`state:`"),
        ("cluster: local", "conf: {spark.sql.streaming.minBatchesToRetain: many}", "spec.wrong-type",
         "minBatchesToRetain", "whole number"),
        ("partitions: 4", "partitions: 4, maintenanceInterval: 5 minutes", "spec.wrong-type",
         "maintenanceInterval", "10min"),
        ("partitions: 4", "partitions: many", "spec.wrong-type", "partitions", "whole number"),
        ("5 * * * *", "0 0 31 2 *", "spec.wrong-schedule", "31 2", "never occurs"),
        ("partitions: 4", "partitions: true", "spec.wrong-type", "partitions", "whole number"),
        ("partitions: 4", "partitions: 0", "spec.wrong-value", "partitions", "greater"),
        ("header: true", "header: [1]", "spec.wrong-type", "header: [1]", "text, a number"),
        ("delay: 2 hours", "delay: 2", "spec.wrong-type", "delay", "unit"),
        ("delay: 2 hours", "delay: 2 months", "spec.wrong-duration", "delay", "duration"),
        ("max_future: 1 day", "max_future: 0 days", "spec.wrong-duration", "max_future", "longer than zero"),
        ("column: departed_at", "column: departed at", "spec.wrong-value", "column: departed at", "pattern"),
        ("time_column: hour", "time_column: hour)--", "spec.wrong-value", "time_column", "pattern"),
        ("mode: append", "mode: apend", "spec.wrong-value", "mode: apend",
         "'append', 'update' or 'complete'"),
        ("mode: append", "mode: update", "spec.missing-key", "mode: update", "needs keys"),
        ("mode: append", "mode: update\n  keys: [hour, hours]", "spec.unknown-column", "keys:", "'hour'"),
        ("time_column: hour", "time_column: huor", "spec.unknown-column", "time_column", "'hour'"),
        ("mode: append", "keys: [hour]", "spec.no-effect", "keys", "has no keys"),
        ("format: delta", "format: parquet", "spec.contradiction", "publish", "direct"),
        ("publish: audited", "publish: direct\n  partition_by: [a, A]", "spec.contradiction",
         "partition_by", "twice"),
        ("  schema: schemas/hourly.ddl\n", "", "spec.missing-key", "sink:", "needs sink.schema"),
        ("  time_column: hour\n", "", "spec.missing-key", "replay", "time_column"),
        ("format: delta\n  path: tables/departures_hourly\n  schema: schemas/hourly.ddl\n  mode: append\n"
         "  time_column: hour\n  publish: audited", "format: memory", "spec.contradiction", "replay",
         "its rows disappear"),
        ("mode: append", "mode: complete", "spec.contradiction", "replay", "single intervals"),
        ("mode: append", "mode: update\n  keys: [origin]", "spec.contradiction", "replay",
         "not among the keys"),
        (SOURCE, "format: delta\n    path: a\n    options: {readChangeFeed: true}", "spec.contradiction",
         "replay", "that has no changes"),
        ("    path: landing/departures\n", "", "spec.missing-key", "departures:", "needs a path"),
        ("static: true", "static: true, watermark: {column: a, delay: 1 day}", "spec.contradiction",
         "airports", "static"),
        ("static: true", "static: true, options: {maxFilesPerTrigger: 1}", "spec.unknown-option",
         "airports", "no effect"),
        ("cluster: local", "cluster: locl", "spec.unknown-cluster", "cluster: locl", "'local'"),
        ("cluster: local", "watermark_policy: max", "spec.no-effect", "watermark_policy", "fewer than two"),
        ("transform.sql", "other.sql", "spec.wrong-value", "transform: other", "transform.sql"),
        ("transform.sql", "transform.py", "spec.file-missing", "transform: transform.py", "transform.py"),
        ("schemas/hourly.ddl", "schemas/absent.ddl", "spec.file-missing", "schema: schemas/absent",
         "absent.ddl"),
        ("tags: [example]", "tags: example", "spec.wrong-type", "tags", "list"),
        ("  departures:", "  Departures:", "spec.wrong-value", "Departures:", "pattern"),
        ("landing/departures", "tables/departures_hourly/x", "spec.contradiction", "path: tables/",
         "own files"),
        (OPTIONS, "broker: default", "spec.no-effect", "broker", "no broker"),
        (OPTIONS, "options: {cleanSource: archive}", "spec.contradiction", "options: {clean",
         "sourceArchiveDir"),
        (OPTIONS, "options: {cleanSource: archive, sourceArchiveDir: ../x}", "spec.wrong-path",
         "sourceArchive", "storage root"),
        (SOURCE, "format: delta\n    path: a\n    schema: schemas/departures.ddl", "spec.no-effect",
         "schema: schemas/dep", "knows"),
        (SOURCE, "format: json\n    path: a", "spec.missing-key", "departures:", "needs a schema"),
        ("static: true", "static: true, settle: 1 minute", "spec.no-effect", "airports", "read completely"),
        (SOURCE, "format: orc\n    path: a\n    schema: schemas/departures.ddl\n    policy: {drift: fail}",
         "spec.no-effect", "policy", "name their columns"),
        (SOURCE, KAFKA + "options: {subscribe: a}\n    value: string\n    policy: {rewritten: warn}",
         "spec.no-effect", "policy", "no policy"),
        (SOURCE, KAFKA + "path: landing\n    options: {subscribe: a}", "spec.no-effect", "path: landing",
         "no path"),
        (SOURCE, KAFKA + "options: {maxOffsetsPerTrigger: 5}", "spec.missing-key", "options",
         "exactly one of"),
        (SOURCE, KAFKA + "options: {subscribe: a, assign: b}", "spec.contradiction", "options",
         "exactly one of"),
        (SOURCE, KAFKA + "options: {subscribe: a, endingOffsets: latest}", "spec.unknown-option",
         "endingOffsets", "no end"),
        (SOURCE, KAFKA + "options: {subscribe: a}\n    broker: other", "spec.unknown-broker",
         "broker: other", "'default'|known here: default"),
        (SOURCE, KAFKA + "options: {subscribe: a}\n    value: string", "spec.no-effect",
         "schema: schemas/dep", "no schema"),
        (SOURCE, KAFKA + "options: {subscribe: a}\n    static: true", "spec.contradiction",
         "static: true", "static"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_line(
    folders: SpecFolders, old: str, new: str, id: str, at: str, says: str
) -> None:
    error = folders.refused(old, new)
    text = PIPELINE.replace(old, new, 1)
    assert error.id == id, str(error)
    assert error.where == f"include/pipelines/hourly/pipeline.yaml:{line_of(text, at)}", str(error)
    assert any(part in str(error) for part in says.split("|")), str(error)
    assert error.do


def test_all_mistakes_of_a_file_are_told_at_once(folders: SpecFolders) -> None:
    folders.add(pipeline=PIPELINE.replace("owner:", "ownr:").replace("format: delta", "format: delte"))
    with pytest.raises(SpecError) as caught:
        folders.load()
    first, second = caught.value.what.splitlines()
    assert "'owner'" in first
    assert "pipeline.yaml:15: sink.format" in second


def test_a_missing_key_names_the_mapping_it_belongs_to(folders: SpecFolders) -> None:
    error = folders.refused("  path: tables/departures_hourly\n", "")
    assert error.id == "spec.missing-key"
    assert "sink.path" in error.what
    assert error.where.endswith(f":{line_of(PIPELINE, 'sink:')}")


def test_only_static_sources_are_no_stream(folders: SpecFolders) -> None:
    error = folders.refused(
        "    watermark: {column: departed_at, delay: 2 hours, max_future: 1 day}", "    static: true"
    )
    assert error.id in ("spec.contradiction", "spec.unknown-option")


def test_a_pipeline_is_frozen(folders: SpecFolders) -> None:
    folders.add()
    pipeline: Pipeline = folders.load()
    with pytest.raises(ValueError, match="frozen"):
        pipeline.cluster = "other"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("tags: [example]", f"tags: [{'t' * 101}]"),
        ("tags: [example]", 'tags: [""]'),
        ("description: Departures per origin and hour", 'description: "a\\0b"'),
        ("description: Departures per origin and hour", f"description: {'d' * 4001}"),
    ],
    ids=["long tag", "no tag", "NUL", "long text"],
)
def test_what_airflow_could_not_keep_is_refused_here(folders: SpecFolders, key: str, value: str) -> None:
    """Airflow would refuse the whole file with all its DAGs, or its database the row."""
    assert key in PIPELINE
    folders.add(pipeline=PIPELINE.replace(key, value))
    with pytest.raises(SpecError, match=r"spec\.wrong-value"):
        folders.load()
