"""Options with a value that Spark could not read: option, value and an example are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from drawdown.errors import SpecError
from drawdown.values.option_types import DURATION, SIZE, WHOLE, one_of
from tests.support.spec_folders import SpecFolders

PIPELINE = """\
sources:
  events: {SOURCE}
sink: {SINK}
"""
CSV = 'format: csv, path: landing/events, schema: "id INT", options: {%s}'
KAFKA = "format: kafka, value: string, options: {subscribe: events, %s}"
DELTA = "format: delta, path: tables/events, options: {%s}"
OUT = "format: delta, path: tables/out, schema: id INT, options: {%s}"
FILES = "format: csv, path: tables/out, options: {%s}, publish: direct"


def loaded(root: Path, source: str, sink: str) -> None:
    folders = SpecFolders(root)
    folders.add(pipeline=PIPELINE.replace("SOURCE", source).replace("SINK", sink))
    folders.load()


@pytest.mark.parametrize(
    ("kind", "option", "must_be"),
    [
        (CSV, "maxFilesPerTrigger: many", "a whole number from 1, not 'many'"),
        (CSV, "maxFilesPerTrigger: 0", "a whole number from 1, not '0'"),
        (CSV, "maxBytesPerTrigger: 10 files", "a size, for example 100m"),
        (CSV, "header: yes", "true or false, not 'yes'"),
        (CSV, "maxColumns: all", "a whole number, not 'all'"),
        (CSV, "cleanSource: move", "archive, delete or off, not 'move'"),
        (CSV, "unescapedQuoteHandling: IGNORE", "STOP_AT_CLOSING_QUOTE"),
        (KAFKA, "maxOffsetsPerTrigger: some", "a whole number from 1, not 'some'"),
        (KAFKA, "failOnDataLoss: never", "true or false, not 'never'"),
        (KAFKA, "kafka.max.poll.records: 1k", "a whole number, not '1k'"),
        (KAFKA, "kafka.isolation.level: none", "read_committed or read_uncommitted"),
        (DELTA, "startingVersion: first", "a whole number or latest, not 'first'"),
        (DELTA, "readChangeFeed: 1", "true or false, not '1'"),
    ],
)
def test_a_source(tmp_path: Path, kind: str, option: str, must_be: str) -> None:
    with pytest.raises(SpecError) as caught:
        loaded(tmp_path, kind % option, OUT % "delta.enableChangeDataFeed: true")
    error = caught.value
    assert error.id == "spec.wrong-value"
    assert f"sources.events.options.{option.split(':')[0]}: must be" in error.what
    assert must_be in error.what
    assert f"such as `{option.split(':')[0]}: " in error.do


@pytest.mark.parametrize(
    ("kind", "option", "must_be"),
    [
        (OUT, "delta.enableChangeDataFeed: on", "true or false, not 'on'"),
        (FILES, "maxRecordsPerFile: few", "a whole number, not 'few'"),
        (FILES, "quoteAll: all", "true or false, not 'all'"),
    ],
)
def test_a_sink(tmp_path: Path, kind: str, option: str, must_be: str) -> None:
    with pytest.raises(SpecError) as caught:
        loaded(tmp_path, CSV % "header: TRUE, maxFileAge: 7d, encoding: anything", kind % option)
    assert caught.value.id == "spec.wrong-value"
    assert must_be in caught.value.what


def test_values_that_spark_reads_are_taken() -> None:
    assert all(WHOLE.takes(each) for each in (1, "20", -1))
    assert all(SIZE.takes(each) for each in (100, "100m", "1GB", "5kb"))
    assert all(DURATION.takes(each) for each in ("7d", "12 h", "500ms", 1000))
    assert one_of("a", "b").takes("A")
