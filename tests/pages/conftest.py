"""Records of pipelines without Spark, for pages (tests/fixtures/pages.py has the client)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fixtures.pages import Ask
from tests.support.fleet_records import FleetRecords

__all__ = ["Ask"]


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FleetRecords:
    monkeypatch.chdir(tmp_path)
    return FleetRecords(tmp_path)
