"""Fixtures of every tier: a sandbox per test, one real Spark session per process of tests."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from drawdown.testing.servers.kafka import KafkaServer
from tests.capabilities import listing as capabilities
from tests.faults.listing import collected, remembered, write_page
from tests.support.database import TestDatabase
from tests.support.rebuilds import Hourly
from tests.support.sandbox import Sandbox
from tests.support.scratch import make_scratch, remove_scratch
from tests.support.spark import start_session
from tests.support.workers import is_worker

pytest_plugins = (
    "tests.fixtures.kafka",
    "tests.fixtures.metastores",
    "tests.fixtures.pages",
    "tests.fixtures.postgres",
    "tests.fixtures.storage",
)

# Tests start hundreds of short-lived JVMs: without the optimising compiler and a collector of many threads
# they take half the processor time (measured).
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

# Sub-processes import this checkout too, whatever is installed.
os.environ["PYTHONPATH"] = os.pathsep.join(
    filter(None, (str(Path(__file__).parents[1] / "include"), os.environ.get("PYTHONPATH")))
)

_outcomes: dict[str, str] = {}
_capabilities: dict[str, capabilities.Shown] = {}
_scratch = pytest.StashKey[Path]()


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    if not is_worker(config):
        config.stash[_scratch] = make_scratch()


def pytest_unconfigure(config: pytest.Config) -> None:
    if _scratch in config.stash:
        remove_scratch(config.stash[_scratch])


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--capabilities-page", action="store_true", help="write docs/capabilities.md")
    parser.addoption("--faults-page", action="store_true", help="write docs/faults.md")
    parser.addoption("--pictures", action="store_true", help="take the screenshots of docs/images")


def pytest_itemcollected(item: pytest.Item) -> None:
    """What a page needs goes with the reports, which come from the workers to their parent."""
    if item.get_closest_marker("sampled") and any(item.callspec.indices.values()):
        item.add_marker(pytest.mark.full)
    item.user_properties += [(capabilities.MARK, id) for id in capabilities.ids_of(item)]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI a skipped test has failed: what could not run was not shown to work."""
    report = yield
    if report.skipped and os.environ.get("CI"):
        report.outcome = "failed"
        report.longrepr = f"skipped in CI: {report.longrepr}"
    return report


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Of every test, whichever worker has run it."""
    if report.when == "call" or report.outcome != "passed":
        _outcomes[report.nodeid] = report.outcome
    capabilities.note(report, _capabilities)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if session.config.getoption("--faults-page") and not is_worker(session.config):
        write_page(collected(), remembered(_outcomes))
    if session.config.getoption("--capabilities-page") and not is_worker(session.config):
        capabilities.write_page(_capabilities)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A real local[2] session with the project's connector jars, for all modules that this process runs.

    Every drain has a newSession of its own and unloads its state; whoever needs other settings takes a
    `newSession()` too, or starts another process.
    """
    session = start_session()
    yield session
    session.stop()


@pytest.fixture
def sandbox(tmp_path: Path, spark: SparkSession) -> Sandbox:
    """A project of its own that drains in the module's session."""
    return Sandbox(tmp_path / "project", spark)


@pytest.fixture
def kafka_sandbox(tmp_path: Path, spark: SparkSession, broker: KafkaServer) -> Sandbox:
    """The same; its default broker is the module's."""
    return Sandbox(tmp_path / "project", spark, kafka=broker.bootstrap_servers)


@pytest.fixture
def postgres_sandbox(tmp_path: Path, spark: SparkSession, database: TestDatabase) -> Sandbox:
    """The same; its default database is the test's."""
    return Sandbox(tmp_path / "project", spark, more=database.project_lines)


@pytest.fixture
def hourly(tmp_path: Path, spark: SparkSession) -> Hourly:
    """A project of its own for the pipeline that rebuilds are tested on."""
    return Hourly(tmp_path / "project", spark)
