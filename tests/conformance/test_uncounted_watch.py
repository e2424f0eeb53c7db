"""TRIG: watches with Spark's own sink, and the drains before and behind them."""

from __future__ import annotations

import json

import pytest

from drawdown.application import SparkApplication
from drawdown.errors import RefusedError, SpecError, TransformError
from drawdown.spec import load_pipeline
from drawdown.spec.scheduling.trigger import parse_trigger
from drawdown.testing.servers.kafka import KafkaServer
from drawdown.workspace import Workspace
from tests.support.refusals import refused
from tests.support.sandbox import Sandbox
from tests.support.watching import watching
from tests.support.words import Words

COUNTED = "SELECT upper(value) AS value FROM words GROUP BY value"


@pytest.mark.conformance("TRIG-04")
def test_a_query_goes_from_one_trigger_to_another_and_back(
    kafka_sandbox: Sandbox, broker: KafkaServer
) -> None:
    words = Words(kafka_sandbox, broker, "trig_04")
    words.send("a", "b")
    assert kafka_sandbox.run("words").counts.read == 2
    project = kafka_sandbox.root / "include" / "project.yaml"
    project.write_text(f"{project.read_text()}lineage: {{file: events.jsonl}}\n")
    for number, (trigger, word) in enumerate([("continuous: 1 second", "c"), ("default", "d")]):
        with watching(kafka_sandbox, "words", trigger) as watched:
            words.send(word)
            watched.until(lambda: words.committed == len(words.sent))
        assert watched.run.counts.read == number, "a continuous trigger has nothing that could count"
        words.send(f"{word}{word}")
        assert kafka_sandbox.run("words").counts.read == 1
    # At least once: a word whose epoch was committed comes once.
    assert words.records() == ["A", "B", "C", "CC", "D", "DD"]
    told = [json.loads(line) for line in (kafka_sandbox.root / "events.jsonl").read_text().splitlines()]
    watches = [each["eventType"] for each in told if each["job"]["name"] == "words.watch"]
    assert watches[:3] == ["START", "RUNNING", "COMPLETE"], "also when Spark's own sink writes"

    # What it cannot run is refused before anything is touched.
    words.spec(transform=COUNTED, name="counted")
    assert "map-like operations only" in refused_watch(kafka_sandbox, "counted", "continuous: 1 second").what
    words.spec(transform="SELECT string(current_timestamp()) AS value FROM words")
    assert "current_timestamp()" in refused_watch(kafka_sandbox, "words", "continuous: 1 second").what
    kafka_sandbox.land_json("landing/rows/1.json", [{"value": "x"}])
    kafka_sandbox.pipeline("files", FILES, row_ddl="value STRING", transform_sql="SELECT value FROM rows")
    error = refused_watch(kafka_sandbox, "files", "continuous: 1 second")
    assert "reads kafka and rate, not json" in error.what
    assert "default trigger or an interval" in str(error.do)


@pytest.mark.full
@pytest.mark.conformance("TRIG-05")
def test_the_real_time_trigger_from_kafka_to_kafka(kafka_sandbox: Sandbox, broker: KafkaServer) -> None:
    words = Words(kafka_sandbox, broker, "trig_05")
    words.send("a")
    kafka_sandbox.run("words")
    with watching(kafka_sandbox, "words", "real-time: 5 seconds") as watched:
        words.send("b")
        # Its row is out before its batch has ended.
        watched.until(lambda: words.records() == ["A", "B"])
        watched.until(lambda: words.committed == 2)
    assert "not counted, checked or audited" in watched.notices[0]
    words.send("c")
    assert kafka_sandbox.run("words").counts.read == 1
    assert words.records() == ["A", "B", "C"]

    words.spec(transform=COUNTED, name="counted")
    refusal = refused_watch(kafka_sandbox, "counted", "real-time: 5 seconds", "trigger.real-time")
    assert "not Aggregate" in refusal.what
    with pytest.raises(SpecError) as caught:
        parse_trigger("real-time: 1 second")
    assert caught.value.id == "trigger.interval"


@pytest.mark.full
@pytest.mark.conformance("TRIG-06")
def test_asynchronous_progress_is_for_watches_and_can_be_switched_off(
    kafka_sandbox: Sandbox, broker: KafkaServer
) -> None:
    words = Words(kafka_sandbox, broker, "trig_06")
    words.send("first")
    kafka_sandbox.run("words")
    asynchronous = (
        "options: {{asyncProgressTrackingEnabled: true, asyncProgressTrackingCheckpointIntervalMs: {}}}"
    )
    words.spec(sink=asynchronous.format(2_000))
    words.send("second")
    error = refused(kafka_sandbox, "words", "trigger.asynchronous-progress", TransformError)
    assert "cannot be used with the Available-now trigger" in error.what
    assert "asyncProgressTrackingCheckpointIntervalMs: 0" in str(error.do)

    with watching(kafka_sandbox, "words") as watched:
        watched.until(lambda: _send_one(words) and _gap(words))
    # Switched off at once, Spark would ask for a batch that was never written.
    words.spec()
    words.send("third")
    gaps = refused(kafka_sandbox, "words", "checkpoint.gaps", RefusedError)
    assert "asyncProgressTrackingCheckpointIntervalMs: 0" in str(gaps.do)

    words.spec(sink=asynchronous.format(0))
    with watching(kafka_sandbox, "words") as again:
        again.until(lambda: _send_one(words) and not _gap(words))
    words.spec()
    words.send("last")
    assert kafka_sandbox.run("words").counts.read >= 1
    # Exactly once is not promised of it; nothing is lost.
    assert set(words.records()) == {word.upper() for word in words.sent}

    words.spec(sink=asynchronous.format(0), transform=COUNTED, name="counted")
    assert "map-like" in refused_watch(kafka_sandbox, "counted", "default", "trigger.asynchronous").what


FILES = """
sources:
  rows: {format: json, path: landing/rows, schema: row.ddl}
transform: transform.sql
sink: {format: console}
state: {partitions: 2}
"""


def test_rows_in_memory_are_watched_once(sandbox: Sandbox) -> None:
    """Spark's memory sink cannot continue from a checkpoint."""
    sandbox.pipeline("ticks", RATES, transform_sql="SELECT value FROM ticks")
    with watching(sandbox, "ticks", "continuous: 1 second") as watched:
        checkpoint = sandbox.storage / "_drawdown/ticks/checkpoint-1/commits"
        watched.until(lambda: checkpoint.exists() and len(list(checkpoint.iterdir())) > 0)
    before = sandbox.everything()
    with watching(sandbox, "ticks", "continuous: 1 second") as again:
        again.awaited()
    error = again.reports[0].error
    assert isinstance(error, RefusedError)
    assert error.id == "trigger.memory"
    assert sandbox.everything() == before


RATES = """
sources:
  ticks: {format: rate, options: {rowsPerSecond: 5, numPartitions: 1}}
transform: transform.sql
sink: {format: memory}
state: {partitions: 2}
"""


def refused_watch(
    sandbox: Sandbox, name: str, trigger: str, error_id: str = "trigger.continuous"
) -> TransformError:
    """The watch ends with this error; storage is as it was."""
    before = sandbox.everything()
    with sandbox.metastore() as metastore:
        application = SparkApplication(Workspace(sandbox.project, metastore), session=sandbox.spark)
        pipeline = load_pipeline(sandbox.project, name)
        error = application.watch(pipeline, parse_trigger(trigger)).error
    assert isinstance(error, TransformError), error
    assert error.id == error_id, str(error)
    assert sandbox.everything() == before
    return error


def _send_one(words: Words) -> bool:
    words.send(f"w{len(words.sent)}")
    return True


def _gap(words: Words) -> bool:
    """Whether the last two batches whose offsets are kept do not follow each other."""
    kept = words.checkpoint.offset_batches()[-2:]
    return len(kept) == 2 and kept[1] - kept[0] > 1
