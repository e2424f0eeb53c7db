"""The conformance tier: counts that must balance after every test, and the page."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from drawdown.metastore import Metastore
from drawdown.testing.servers.kafka import KafkaServer
from tests.conformance.listing import Shown, write_page
from tests.support.database import TestDatabase
from tests.support.sandbox import Sandbox
from tests.support.spark import ROOT
from tests.support.workers import is_worker

ROW, SPEC = "row", "spec"
"""Names of what a test's report carries: the id of a row; name and text of a pipeline."""

_shown: dict[str, Shown] = defaultdict(Shown)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--conformance-page", action="store_true", help="write docs/conformance.md")


def pytest_itemcollected(item: pytest.Item) -> None:
    """What the page needs goes with the reports, which come from the workers to their parent."""
    item.user_properties += [(ROW, id) for id in _ids(item)]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    for id in [value for key, value in report.user_properties if key == ROW]:
        shown = _shown[str(id)]
        if report.when == "call" or report.outcome != "passed":
            shown.outcomes.append(report.outcome)
        if report.when == "teardown":
            specs = [value for key, value in report.user_properties if key == SPEC]
            shown.specs = dict(specs) | shown.specs


def pytest_sessionfinish(session: pytest.Session) -> None:
    if session.config.getoption("--conformance-page", default=False) and not is_worker(session.config):
        write_page(_shown)


def _ids(item: pytest.Item) -> list[str]:
    return [id for mark in item.iter_markers("conformance") for id in mark.args]


@pytest.fixture(scope="package")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    """A real broker for the tier; use topics of your own."""
    with KafkaServer(tmp_path_factory.mktemp("kafka"), state_dir=ROOT / ".drawdown") as running:
        yield running


@pytest.fixture
def sandbox(tmp_path: Path, spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """A project of its own, without a broker."""
    yield from _accounted(Sandbox(tmp_path / "project", spark), request)


@pytest.fixture
def kafka_sandbox(
    tmp_path: Path, spark: SparkSession, broker: KafkaServer, request: pytest.FixtureRequest
) -> Iterator[Sandbox]:
    """A project of its own whose default broker is the tier's."""
    yield from _accounted(Sandbox(tmp_path / "project", spark, kafka=broker.bootstrap_servers), request)


@pytest.fixture
def postgres_sandbox(
    tmp_path: Path, spark: SparkSession, database: TestDatabase, request: pytest.FixtureRequest
) -> Iterator[Sandbox]:
    """A project of its own whose default database is the test's."""
    yield from _accounted(Sandbox(tmp_path / "project", spark, more=database.project_lines), request)


def _accounted(made: Sandbox, request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """Nothing is dropped silently: after every test, each batch of each pipeline accounts for all it read."""
    yield made
    folders = sorted((made.root / "include" / "pipelines").iterdir())
    for folder in folders:
        request.node.user_properties.append((SPEC, [folder.name, (folder / "pipeline.yaml").read_text()]))
    if not (made.root / "metastore.db").exists():
        return
    with Metastore.open(made.project.metastore_url) as metastore:
        for folder in folders:
            checkpoint = metastore.active_checkpoint(folder.name)
            for batch in metastore.batches(folder.name, checkpoint.generation) if checkpoint else ():
                assert batch.counts.balanced, f"{folder.name} batch {batch.batch_id}: {batch.counts}"
                for part in ("read", "malformed", "future", "quarantined", "fed", "late"):
                    by_source = sum(counts[part] for counts in batch.by_source.values())
                    assert by_source == getattr(batch.counts, part), (folder.name, batch.batch_id, part)
