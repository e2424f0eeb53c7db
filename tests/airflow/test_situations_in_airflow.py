"""An operator in Airflow's own pages: from its home to the remedy in two clicks, in each situation."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from dev.airflow.home import LocalAirflow
from tests.support.browser import Browser
from tests.support.dag_project import ROOT
from tests.support.fleet_records import FleetRecords
from tests.support.situations import SITUATIONS

pytestmark = [pytest.mark.full, pytest.mark.capability("SEE-11"), pytest.mark.timeout(400)]


def pipeline_of(situation: str) -> str:
    return f"in_{situation.replace(' ', '_')}"


@pytest.fixture(scope="module")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalAirflow]:
    root = tmp_path_factory.mktemp("situations") / "project"
    fleet = FleetRecords(root)
    for name, situation in SITUATIONS.items():
        fleet.pipeline(pipeline_of(name), situation.spec)
        situation.make(fleet, pipeline_of(name))
    fleet.record(*map(pipeline_of, SITUATIONS))
    (root / "dags").mkdir()
    shutil.copy(ROOT / "dags/drawdown.py", root / "dags")
    (root / "plugins").symlink_to(ROOT / "plugins")
    with LocalAirflow(root, root / "airflow") as started:
        yield started


def test_each_situation_is_answered_two_clicks_from_home(airflow: LocalAirflow, browser: Browser) -> None:
    page = browser.page
    for name, situation in SITUATIONS.items():
        pipeline = pipeline_of(name)
        browser.open()
        page.get_by_role("link", name="Fleet").first.click()
        inside = page.frame_locator("iframe")
        row = inside.get_by_role("row").filter(has=inside.get_by_role("link", name=pipeline, exact=True))
        expect(row).to_contain_text(situation.why)
        expect(row.get_by_role("cell").first).to_have_text(situation.state)
        remedy = situation.remedy.replace("NAME", pipeline)
        address = situation.leads_to.replace("NAME", pipeline)
        what_to_do = row.get_by_role("cell").nth(1).get_by_role("link")
        if address.startswith("/drawdown"):
            what_to_do.click()
            expect(inside.get_by_text(remedy).first).to_be_visible()
        else:
            expect(row).to_contain_text(remedy)
            what_to_do.click()
            page.wait_for_url(re.compile(re.escape(airflow.url + address) + "$"))
