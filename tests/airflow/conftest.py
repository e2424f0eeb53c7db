"""Airflow reads its settings when it is first imported: give it a home that is no one's; and a browser."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from dev.airflow.home import LocalAirflow
from tests.support.browser import Browser, logged_in


def pytest_configure() -> None:
    os.environ.setdefault("AIRFLOW_HOME", tempfile.mkdtemp(prefix="drawdown-tests-airflow-"))
    os.environ.setdefault("AIRFLOW__CORE__LOAD_EXAMPLES", "False")
    # A DAG with a timetable of our own is kept by an Airflow that has the plugin.
    os.environ.setdefault("AIRFLOW__CORE__PLUGINS_FOLDER", str(Path(__file__).parents[2] / "plugins"))


@pytest.fixture
def browser(request: pytest.FixtureRequest, airflow: LocalAirflow) -> Iterator[Browser]:
    """Open on the module's Airflow; with `--pictures` it takes those of the documentation."""
    with logged_in(airflow, takes_pictures=request.config.getoption("--pictures")) as browser:
        yield browser
