"""What a user meets in a running Airflow: the page of a run's records, and backfills, of replays only:
by the REST API, by Airflow's own command, and by its dialog in a browser.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import timedelta
from urllib.parse import quote

import pytest
from deltalake import DeltaTable
from fastapi.routing import APIRoute

from dev.airflow.home import LocalAirflow
from drawdown.errors import MachineError
from drawdown.metastore import Metastore
from drawdown.metastore.records import Counts, Run
from tests.support import processes_with, unprivileged
from tests.support.airflow_runs import assert_success
from tests.support.airflow_users import token_of, users
from tests.support.alert_receivers import Webhook
from tests.support.asset_events import asset_events
from tests.support.browser import Browser
from tests.support.dag_project import ROOT, DagProject

pytestmark = pytest.mark.timeout(240)

RUN_ID = "manual__2026-01-01T00:00:00+00:00"
REPLAY = "days__replay"
WATCHED = """
metrics: {connection: scrape}
alert_targets: {team: {connection: team_hook}}
alerts: {when: [failing]}
"""
TOKEN = "a-token-that-only-airflow-knows"
READ = '<td class="number">1,234</td>'


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> DagProject:
    project = DagProject(tmp_path_factory.mktemp("web") / "project", more=WATCHED)
    project.pipeline("events", 'schedule: "5 * * * *"')
    write_days(project)
    multiply(project, 1)
    write_below(project)
    (project.root / "plugins").symlink_to(ROOT / "plugins")
    return project


@pytest.fixture(scope="module")
def airflow(project: DagProject) -> Iterator[LocalAirflow]:
    with open_metastore(project) as metastore:
        record_a_failed_run(metastore)
    others = users(nobody="", reader="viewer")
    with LocalAirflow(project.root, project.root / "airflow", extra_env=others) as started:
        yield started


@pytest.fixture(scope="module")
def drained(project: DagProject, airflow: LocalAirflow) -> LocalAirflow:
    """The days are in the table, by a run of the pipeline's DAG."""
    airflow.unpause("days")
    assert_success(airflow, "days", airflow.trigger("days"), 400)
    assert days(project) == computed([1, 2, 3, 4], 1)
    return airflow


def record_a_failed_run(metastore: Metastore) -> None:
    origin = {"dag_id": "events", "dag_run_id": RUN_ID}
    lease = metastore.acquire("events", "test", "run-1", timedelta(minutes=1))
    metastore.start_run(Run("run-1", "events", origin=origin))
    error = {"id": "source.unreadable", "what": "<script>alert(1)</script>", "where": "", "do": "look"}
    metastore.finish_run("run-1", "failed", counts=Counts(read=1234), error=error)
    metastore.release(lease)


OVER_ALL_DAGS = "/fleet", "/decisions", "/graph"
"""Pages that show what somebody may read, and nothing to those who may read nothing."""
RUN_PAGE = f"/runs/events/{quote(RUN_ID, safe='')}"


def answered(airflow: LocalAirflow, token: str | None, path: str = RUN_PAGE) -> tuple[int, str]:
    """The status and the text of a page."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(f"{airflow.url}/drawdown{path}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()


def all_pages() -> list[str]:
    """Every page of a run, pipeline or fleet, whoever adds it; metrics have a token of their own."""
    from drawdown.airflow.pages.app import app

    names = {"dag_id": "events", "dag_run_id": quote(RUN_ID, safe=""), "pipeline": "events", "page": "1.html"}
    routes = [route.path.replace(":path", "") for route in app.routes if isinstance(route, APIRoute)]
    return [path.format(**names) for path in routes if path != "/metrics"]


@pytest.mark.capability("SAFE-06")
def test_no_part_of_airflow_shows_its_keys_to_its_users_other_processes(airflow: LocalAirflow) -> None:
    key = airflow.environment["AIRFLOW__CORE__FERNET_KEY"]
    look = [sys.executable, processes_with.__file__]
    seen, exist = (
        subprocess.run(command, input=key, capture_output=True, text=True, check=True).stdout.split()
        for command in (unprivileged.as_the_same_user(*look), look)
    )
    assert seen == []
    assert os.geteuid() != 0 or len(exist) >= len(airflow.starts), "root sees the components"


def test_the_page_shows_the_run_with_all_text_escaped(airflow: LocalAirflow) -> None:
    status, text = answered(airflow, token_of(airflow, airflow.user))
    assert status == 200
    assert READ in text
    assert "source.unreadable" in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert not re.search("<script>", text)


@pytest.mark.usefixtures("airflow_home")
def test_every_page_is_for_those_who_may_read_the_dag(airflow: LocalAirflow) -> None:
    assert READ in answered(airflow, token_of(airflow, "reader"))[1]
    nobody = token_of(airflow, "nobody")
    for path in all_pages():
        for address in (path, f"{path}?format=json"):
            assert answered(airflow, None, address)[0] == 401, address
            status, text = answered(airflow, nobody, address)
            assert status == (200 if path in OVER_ALL_DAGS else 403), address
            assert "1,234" not in text, address
            assert "events" not in text.replace("pointer-events", ""), address


def scrape(airflow: LocalAirflow, token: str) -> str:
    request = urllib.request.Request(
        f"{airflow.url}/drawdown/metrics", headers={"Authorization": f"Bearer {token}"}
    )
    with urllib.request.urlopen(request, timeout=30) as response:
        return str(response.read().decode())


@pytest.mark.capability("SEE-12", "SEE-14")
def test_airflow_itself_records_tells_and_is_scraped(airflow: LocalAirflow) -> None:
    """Token and address are in connections of Airflow's database: web server and tasks look them up."""
    with Webhook() as hook:
        for name, word in (("scrape", TOKEN), ("team_hook", hook.address)):
            airflow.api.call(
                "POST", "connections", body={"connection_id": name, "conn_type": "generic", "password": word}
            )
        run_id = airflow.trigger("drawdown__freshness")
        assert_success(airflow, "drawdown__freshness", run_id, 120)
        [(title, text)] = hook.said
    assert title == "events: failing"
    assert text.endswith(f"\n{airflow.url}/dags/events")
    for task in ("record-figures", "send-alerts"):
        assert "very-secret-word" not in airflow.task_log("drawdown__freshness", run_id, task)
    assert 'drawdown_state{pipeline="events",state="failed"} 1.0' in scrape(airflow, TOKEN)
    with pytest.raises(urllib.error.HTTPError) as refused:
        scrape(airflow, token_of(airflow, airflow.user))
    assert refused.value.code == 401


def test_a_backfill_of_a_drain_is_refused(airflow: LocalAirflow) -> None:
    airflow.unpause("events")
    body = {"dag_id": "events", "from_date": "2026-01-01T00:00:00Z", "to_date": "2026-01-02T00:00:00Z"}
    with pytest.raises(MachineError, match="backfill"):
        airflow.api.call("POST", "backfills", body=body)


@pytest.mark.full
@pytest.mark.timeout(900)
def test_a_backfill_by_the_rest_api_replaces_its_intervals(
    project: DagProject, drained: LocalAirflow
) -> None:
    before = days(project)
    multiply(project, 10)
    body = {"dag_id": REPLAY, "from_date": "2024-01-01T00:00:00Z", "to_date": "2024-01-02T00:00:00Z"}
    drained.api.call("POST", "backfills", body=body)
    assert newest_backfill(drained) == ["success", "success"]
    assert days(project) == before | computed([1, 2], 10)
    with open_metastore(project) as metastore:
        replays = [run for run in metastore.runs("days") if run.kind == "replay"]
    assert {run.origin["run_type"] for run in replays} == {"backfill"}

    told = asset_events(drained, source_dag_id=REPLAY)
    offers = [offer for event in told for offer in event["extra"]["offers"]]
    assert len(offers) == 2
    assert all(offer.startswith("below has no `replay:`") for offer in offers)
    with open_metastore(project) as metastore:
        assert metastore.runs("below") == [], "what reads the table is offered a replay, and starts nothing"


@pytest.mark.full
@pytest.mark.timeout(900)
def test_the_same_backfill_again_by_command_gives_the_same_table(
    project: DagProject, drained: LocalAirflow
) -> None:
    before, replays = days(project), replayed(project)
    span = ["--from-date", "2024-01-01", "--to-date", "2024-01-02", "--reprocess-behavior", "completed"]
    airflow_command(drained, "backfill", "create", "--dag-id", REPLAY, *span)
    assert newest_backfill(drained) == ["success", "success"]
    assert days(project) == before
    assert replayed(project) == sorted([*replays, "2024-01-01", "2024-01-02"]), "they were computed again"


@pytest.mark.full
@pytest.mark.timeout(900)
def test_a_backfill_by_the_dialog_in_a_browser(
    project: DagProject, drained: LocalAirflow, browser: Browser
) -> None:
    before = days(project)
    multiply(project, 100)
    page = browser.page
    browser.open("dags", REPLAY)
    page.get_by_role("button", name="Trigger").click()
    dialog = page.get_by_role("dialog").filter(has_text=REPLAY)
    dialog.get_by_text("Backfill", exact=True).click()
    for end, day in (("From", "2024/01/02"), ("To", "2024/01/03")):
        field = dialog.get_by_role("group").filter(has=page.get_by_text(end, exact=True))
        field.get_by_test_id("datetime-input").click()
        page.get_by_placeholder("YYYY/MM/DD").fill(day)
        page.keyboard.press("Escape")
    dialog.get_by_text("All Runs", exact=True).click()
    dialog.get_by_text("2 runs will be triggered").wait_for()
    browser.picture("backfill-dialog")
    dialog.get_by_role("button", name="Run Backfill").click()
    dialog.wait_for(state="hidden")

    assert newest_backfill(drained) == ["success", "success"]
    assert days(project) == before | computed([2, 3], 100)
    browser.open("dags", REPLAY, "runs")
    page.get_by_role("table").get_by_text("Success").first.wait_for()
    browser.picture("backfill-runs")


@pytest.mark.full
@pytest.mark.timeout(900)
def test_the_calendar_starts_a_backfill_of_what_failed(
    project: DagProject, drained: LocalAirflow, browser: Browser
) -> None:
    before = days(project)
    multiply(project, 1000)
    origin = {"interval": ["2024-01-02T00:00:00+00:00", "2024-01-03T00:00:00+00:00"]}
    with open_metastore(project) as metastore:
        failed = metastore.start_run(Run("days-failed", "days", kind="replay", origin=origin))
        metastore.finish_run(failed.run_id, "failed")
    page = browser.page
    browser.open()
    page.get_by_role("link", name="Fleet").first.click()
    inside = page.frame_locator("iframe")
    inside.get_by_role("link", name="days", exact=True).click()
    inside.get_by_role("link", name="Calendar").first.click()
    inside.get_by_role("button", name="Replay 1 interval").click()
    inside.get_by_text("The backfill has been created.").wait_for()
    inside.get_by_role("link", name="Look at it in Airflow").click()
    page.wait_for_url(f"**/dags/{REPLAY}/backfills")
    assert newest_backfill(drained) == ["success"]
    assert days(project) == before | computed([2], 1000)


def write_days(project: DagProject) -> None:
    """A pipeline whose rows are replayed by days, and the rows of four days."""
    folder = project.pipeline("days", "replay: {interval: 1 day}")
    spec = (
        (folder / "pipeline.yaml")
        .read_text()
        .replace("    options:", "    watermark: {column: at, delay: 0 seconds}\n    options:")
    )
    (folder / "pipeline.yaml").write_text(spec.replace("publish: audited", "time_column: at"))
    (folder / "schemas" / "events.ddl").write_text("at TIMESTAMP, id BIGINT")
    landing = project.storage / "landing" / "days"
    landing.mkdir(parents=True)
    rows = [{"at": f"{at}:00:00Z", "id": number} for at, number in computed([1, 2, 3, 4], 1).items()]
    (landing / "a.json").write_text("\n".join(json.dumps(row) for row in rows))


def write_below(project: DagProject) -> None:
    """A pipeline that reads the table of the days; nobody runs it."""
    folder = project.root / "include/pipelines/below"
    folder.mkdir()
    (folder / "pipeline.yaml").write_text(
        "sources: {days: {format: delta, path: tables/days, options: {skipChangeCommits: true}}}\n"
        "transform: transform.sql\nsink: {format: parquet, path: tables/below}\n"
    )
    (folder / "transform.sql").write_text("SELECT * FROM days")


def multiply(project: DagProject, factor: int) -> None:
    """What the transform does to each number, from now on."""
    transform = project.root / "include/pipelines/days/transform.sql"
    transform.write_text(f"SELECT at, id * {factor} AS id FROM events")


def computed(january: list[int], factor: int) -> dict[str, int]:
    """The rows of these days as they must be: two a day."""
    return {f"2024-01-0{day}T{hour:02d}": (day * 24 + hour) * factor for day in january for hour in (6, 18)}


def days(project: DagProject) -> dict[str, int]:
    table = DeltaTable(str(project.storage / "tables" / "days")).to_pyarrow_table().to_pylist()
    assert len(table) == 8
    return {f"{row['at']:%Y-%m-%dT%H}": row["id"] for row in table}


def replayed(project: DagProject) -> list[str]:
    """The first day of each replay on record."""
    with open_metastore(project) as metastore:
        runs = metastore.runs("days")
    return sorted(run.origin["interval"][0][:10] for run in runs if run.kind == "replay")


def newest_backfill(airflow: LocalAirflow) -> list[str]:
    """Wait for its end; the states of its runs."""
    found = airflow.api.call("GET", "backfills", dag_id=REPLAY, order_by="-id", limit=1)["backfills"][0]
    while airflow.api.call("GET", "backfills", str(found["id"]))["completed_at"] is None:
        time.sleep(0.5)
    ends = {"gte": found["from_date"], "lte": found["to_date"]}
    query = {f"logical_date_{which}": at for which, at in ends.items()}
    return [run["state"] for run in airflow.api.call("GET", "dags", REPLAY, "dagRuns", **query)["dag_runs"]]


def open_metastore(project: DagProject) -> Metastore:
    return Metastore.open(f"sqlite:///{project.root / 'metastore.db'}")


def airflow_command(airflow: LocalAirflow, *words: str) -> None:
    """`airflow`, with the project's Airflow around it."""
    command = [sys.executable, "-m", "airflow", *words]
    done = subprocess.run(command, env=airflow.environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
