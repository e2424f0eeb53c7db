"""The pages inside Airflow's own, in a browser, where Airflow's address has a path, as behind a proxy."""

from __future__ import annotations

import json
import shutil
import urllib.request
from collections.abc import Iterator

import pytest
from playwright.sync_api import FrameLocator

from dev.airflow.home import LocalAirflow
from tests.support.airflow_users import token_of
from tests.support.browser import Browser
from tests.support.dag_project import ROOT
from tests.support.fleet_records import FleetRecords
from tests.support.pipeline_history import history

pytestmark = [pytest.mark.full, pytest.mark.capability("SEE-08"), pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalAirflow]:
    root = tmp_path_factory.mktemp("prefix") / "project"
    fleet = FleetRecords(root)
    history(fleet, "orders")
    fleet.record("orders")
    (root / "dags").mkdir()
    shutil.copy(ROOT / "dags/drawdown.py", root / "dags")
    (root / "plugins").symlink_to(ROOT / "plugins")
    with LocalAirflow(root, root / "airflow", prefix="/team/airflow") as started:
        started.unpause("orders")
        yield started


def framed(browser: Browser) -> FrameLocator:
    """The page that Airflow shows in its own."""
    return browser.page.frame_locator("iframe")


def test_a_person_goes_from_the_fleet_to_a_pipeline_and_a_run(
    airflow: LocalAirflow, browser: Browser
) -> None:
    page = browser.page
    browser.open("plugin", "drawdown-fleet")
    inside = framed(browser)
    inside.get_by_role("link", name="orders", exact=True).click()
    inside.get_by_role("heading", level=1, name="orders").wait_for()
    inside.get_by_role("img", name="Rows read, by what became of them").wait_for()
    inside.get_by_text("All figures of these runs").click()
    inside.get_by_role("region", name="All figures").get_by_role("link").first.click()
    inside.get_by_text("100 read = 4 malformed").wait_for()
    # Airflow's frame lets no link out: frame.js has the window around it follow this one.
    inside.get_by_role("link", name="Run in Airflow").click()
    page.wait_for_url(f"{airflow.url}/dags/orders/runs/**")


def test_the_tab_of_a_dag_is_the_page_of_its_pipeline(airflow: LocalAirflow, browser: Browser) -> None:
    browser.open("dags", "orders")
    browser.page.get_by_role("link", name="Pipeline", exact=True).click()
    inside = framed(browser)
    inside.get_by_role("img", name="Seconds by phase").wait_for()
    assert inside.locator("body").evaluate("e => getComputedStyle(e).fontFamily") == "system-ui, sans-serif"


def test_the_tab_of_a_dag_run_is_the_page_of_its_batches(airflow: LocalAirflow, browser: Browser) -> None:
    run_id = airflow.trigger("orders")
    browser.open("dags", "orders", "runs", run_id)
    browser.page.get_by_role("link", name="Batches", exact=True).click()
    inside = framed(browser)
    inside.get_by_role("heading", level=1, name=f"orders · {run_id}").wait_for()


def test_the_twin_of_a_page_is_below_the_prefix_too(airflow: LocalAirflow) -> None:
    request = urllib.request.Request(f"{airflow.url}/drawdown/dags/orders?format=json")
    request.add_header("Authorization", f"Bearer {token_of(airflow, airflow.user)}")
    with urllib.request.urlopen(request, timeout=30) as response:
        assert json.load(response)["pipeline"] == "orders"


def test_nothing_is_shown_without_a_login(airflow: LocalAirflow) -> None:
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"{airflow.url}/drawdown/dags/orders", timeout=30)
    assert refused.value.code == 401
