"""A source with `arrivals:`: notifications say which files are new, and nothing is listed for it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from drawdown.errors import DrawdownError
from drawdown.plan.preflight import Preflight, preflight
from drawdown.spec import load_pipeline
from drawdown.testing.servers.kafka import KafkaServer
from drawdown.workspace import Workspace
from tests.support.command_line import drawdown
from tests.support.landing_bucket import LandingBucket
from tests.support.notifications import created
from tests.support.s3_servers import Moto, S3Server, Versitygw
from tests.support.topics import Topic
from tests.support.waiting import until

SPEC = """
sources:
  events:
    format: json
    path: landing/events
    schema: "id BIGINT, day INT"
    arrivals: {{topic: {topic}, list_every: {every}}}
transform: transform.sql
sink: {{format: delta, path: tables/out, schema: "id BIGINT, day INT"}}
state: {{partitions: 2}}
"""
FOLDER = "landing/events"


class ReportingBucket(LandingBucket):
    """A bucket that reports to a topic of its own what a test says."""

    def __init__(self, root: Path, spark: SparkSession, server: S3Server, broker: KafkaServer) -> None:
        super().__init__(root, spark, server)
        with (root / "include" / "project.yaml").open("a") as file:
            file.write(f"brokers:\n  default: {{bootstrap_servers: '{broker.bootstrap_servers}'}}\n")
        self.topic = Topic(broker, f"landed-{self.bucket}")
        self.write("1 day")

    def write(self, every: str, topic: str = "") -> None:
        spec = SPEC.format(topic=topic or self.topic.name, every=every)
        self.pipeline("reported", spec, transform_sql="SELECT * FROM events")

    def land(self, name: str, number: int, reported: bool = True) -> None:  # type: ignore[override]
        self.put(f"{FOLDER}/{name}.json", [{"id": number}])
        if reported:
            self.report(name)

    def report(self, name: str) -> None:
        self.topic.write([created(self.bucket, f"{FOLDER}/{name}.json")])

    def look(self) -> Preflight:
        with self.metastore() as metastore:
            return preflight(Workspace(self.project, metastore), load_pipeline(self.project, "reported"))

    def new_files(self) -> int:
        return int(self.look().backlog["events"]["files"])

    def ids(self) -> list[int]:
        assert self.spark is not None
        rows = self.spark.read.format("delta").load(f"s3a://{self.bucket}/tables/out").collect()
        return sorted(row.id for row in rows)


@pytest.fixture
def bucket(tmp_path: Path, spark: SparkSession, s3: Moto, broker: KafkaServer) -> ReportingBucket:
    return ReportingBucket(tmp_path / "project", spark, s3, broker)


@pytest.mark.capability("OBJ-20")
def test_a_reported_file_is_read_and_one_that_was_not_is_found_by_the_next_listing(
    bucket: ReportingBucket,
) -> None:
    bucket.land("day=1/a", 1, reported=False)
    bucket.run("reported")
    assert not bucket.look().work

    bucket.land("day=1/lost", 2, reported=False)
    assert not bucket.look().work, "nothing was listed"
    bucket.land("day=2/b", 3)
    bucket.report("day=2/b")  # a notification may come twice,
    bucket.report("day=1/a")  # late,
    bucket.report("day=2/gone")  # and of an object that is not there any more
    assert bucket.new_files() == 1
    bucket.run("reported")
    assert bucket.ids() == [1, 3]
    assert not bucket.look().work

    bucket.write("1 second")
    found = bucket.look()
    assert "all files are listed: they were listed 1 second ago" in str(found.reasons)
    bucket.run("reported")
    assert bucket.ids() == [1, 2, 3]


@pytest.mark.full
def test_a_file_whose_run_failed_is_read_by_the_next_without_another_notification(
    bucket: ReportingBucket,
) -> None:
    spec = SPEC.format(topic=bucket.topic.name, every="1 day").replace(
        "    arrivals", "    malformed: fail\n    arrivals"
    )
    bucket.pipeline("reported", spec, transform_sql="SELECT * FROM events")
    bucket.land("day=1/a", 1)
    bucket.run("reported")
    bucket.server.client(bucket.bucket).put(f"{FOLDER}/day=1/b.json", b"not json\n")
    bucket.report("day=1/b")
    with pytest.raises(DrawdownError, match="malformed"):
        bucket.run("reported")
    bucket.land("day=1/b", 2, reported=False)
    bucket.run("reported")
    assert bucket.ids() == [1, 2]


@pytest.mark.full
def test_what_a_bounded_run_leaves_is_read_by_the_next(bucket: ReportingBucket) -> None:
    bucket.land("day=1/a", 1)
    bucket.run("reported")
    spec = SPEC.format(topic=bucket.topic.name, every="1 day").replace(
        "    arrivals", "    options: {maxFilesPerTrigger: 1}\n    arrivals"
    )
    bounded = f"{spec}drain: {{max_batches: 1}}\n"
    bucket.pipeline("reported", bounded, transform_sql="SELECT * FROM events")
    for number in (2, 3, 4):
        bucket.land(f"day=1/{number}", number)
    runs = [bucket.run("reported") for _ in range(3)]
    assert [run.counts.read for run in runs] == [1, 1, 1]
    assert bucket.ids() == [1, 2, 3, 4]
    assert not bucket.look().work


@pytest.mark.full
def test_a_topic_that_cannot_be_read_costs_a_listing_and_a_warning(bucket: ReportingBucket) -> None:
    bucket.land("day=1/a", 1)
    bucket.run("reported")
    bucket.write("1 day", topic="nowhere")
    bucket.land("day=1/b", 2, reported=False)
    assert bucket.new_files() == 1
    run = bucket.run("reported")
    assert [notice["id"] for notice in run.notices] == ["source.notifications"]
    assert bucket.ids() == [1, 2]

    bucket.write("1 day")
    bucket.land("day=1/c", 3, reported=False)
    bucket.land("day=1/d", 4)
    assert bucket.new_files() == 1, "the topic is read from where it was"
    bucket.run("reported")
    assert bucket.ids() == [1, 2, 4]

    # As after `drawdown checkpoint rewind`: the log of seen files ends before what was kept.
    path = "_drawdown/reported/arrivals-1/events.json"
    kept = json.loads(bucket.objects.read_bytes(path))
    bucket.objects.write_atomic(path, json.dumps({**kept, "read_until": 99}).encode())
    assert "the checkpoint was rewound" in str(bucket.look().reasons)
    bucket.run("reported")
    assert bucket.ids() == [1, 2, 3, 4]


@pytest.mark.full
@pytest.mark.parametrize("topics", [[""] * 6, ["nowhere"] * 2 + [""] * 4], ids=["read", "away"])
def test_behind_a_rewind_every_run_lists_until_one_has_read_all(
    bucket: ReportingBucket, topics: list[str]
) -> None:
    for numbers in ((1, 2, 3), (4, 5, 6, 7, 8), (9,)):
        for number in numbers:
            bucket.land(f"day=1/{number}", number)
        bucket.run("reported")
    done = drawdown(bucket.root, "checkpoint", "rewind", "reported", "--to", "0", "--sink", "--why", "x")
    assert done.returncode == 0, done.stderr
    read = []
    for topic in topics:
        spec = SPEC.format(topic=topic or bucket.topic.name, every="1 day").replace(
            "    arrivals", "    options: {maxFilesPerTrigger: 1}\n    arrivals"
        )
        bounded = f"{spec}drain: {{max_batches: 1}}\n"
        bucket.pipeline("reported", bounded, transform_sql="SELECT * FROM events")
        read.append(bucket.run("reported").counts.read)
    assert read == [1] * 6, "behind the second, the log is as long as before"
    assert bucket.ids() == list(range(1, 10))


class Reporting(Versitygw):
    """versitygw, which reports to a topic by itself."""

    def __init__(self, broker: KafkaServer, topic: str) -> None:
        super().__init__()
        self._to = broker.bootstrap_servers, topic

    def _command(self, port: int) -> list[str | Path]:
        program, *rest = super()._command(port)
        address, topic = self._to
        return [program, "--event-kafka-url", address, "--event-kafka-topic", topic, *rest]


@pytest.fixture
def reporting(broker: KafkaServer) -> Iterator[Reporting]:
    Topic(broker, "landed")
    with Reporting(broker, "landed") as server:
        yield server


@pytest.mark.full
@pytest.mark.capability("OBJ-20")
def test_a_server_reports_and_a_run_makes_as_many_requests_among_5000_objects_as_among_one(
    tmp_path: Path, spark: SparkSession, reporting: Reporting, broker: KafkaServer
) -> None:
    bucket = ReportingBucket(tmp_path / "project", spark, reporting, broker)
    bucket.write("1 day", topic="landed")
    bucket.land("day=1/a", 1, reported=False)
    bucket.run("reported")
    few = requests_of_a_run(bucket, "day=1/b c+d", 2)
    keys = [f"{FOLDER}/day=1/old-{number:04}.json" for number in range(5_000)]
    bucket.place(keys, [1_700_000_000] * len(keys), b'{"id": 9}\n')
    many = requests_of_a_run(bucket, "day=1/e", 3)
    print(few, many)
    assert many <= few + 5, "a batch more in the logs"
    assert bucket.ids() == [1, 2, 3], "the others were not reported"


def requests_of_a_run(bucket: ReportingBucket, name: str, number: int) -> int:
    """Requests for the landing folder of a preflight and a run that reads one new file."""
    bucket.land(name, number, reported=False)
    until(lambda: bucket.new_files() == 1, 20)
    bucket.server.mark()
    assert bucket.new_files() == 1
    bucket.run("reported")
    counted = bucket.server.requests(f"{FOLDER}*")
    print(counted)
    return counted.total()
