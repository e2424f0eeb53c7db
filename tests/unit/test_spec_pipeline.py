"""pipeline.yaml: what is right loads whole, what is wrong is one error at the line of the key."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from drawdown.errors import SpecError
from drawdown.spec import Pipeline
from tests.support.spec_folders import PIPELINE, QUALITY, SpecFolders, line_of


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
