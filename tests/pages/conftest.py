"""Pages without Airflow's web server: the same application, for a user who may read some DAGs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fastapi import HTTPException
from fastapi.testclient import TestClient

from tests.support.fleet_records import FleetRecords

Ask = Callable[..., TestClient]


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FleetRecords:
    monkeypatch.chdir(tmp_path)
    return FleetRecords(tmp_path)


@pytest.fixture
def as_reader_of() -> Iterator[Ask]:
    """A client for somebody who may read these DAGs."""
    from drawdown.airflow.pages.access import may_read_runs, readable_dags
    from drawdown.airflow.pages.app import app

    def client(*dags: str) -> TestClient:
        def check(dag_id: str) -> None:
            if dag_id not in dags:
                raise HTTPException(403)

        app.dependency_overrides[readable_dags] = lambda: set(dags)
        app.dependency_overrides[may_read_runs] = check
        return TestClient(app, root_path="/drawdown")

    yield client
    app.dependency_overrides.clear()
