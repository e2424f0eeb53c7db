"""GET /drawdown/metrics: for whom, what it says, and that Prometheus and its rules take it."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import uvicorn
import yaml
from fastapi import FastAPI
from fastapi.testclient import TestClient
from prometheus_client.parser import text_string_to_metric_families

import drawdown.observe
from drawdown.airflow.pages.app import app
from drawdown.metastore.records import Counts
from drawdown.observe.metrics import CLUSTERS, FAMILIES
from drawdown.processes.ports import free_ports
from tests.support.fleet_records import FleetRecords
from tests.support.prometheus import prometheus, promtool

TOKEN = "0123456789abcdef-metrics"
RULES = Path(drawdown.observe.__file__).parent / "prometheus_rules.yaml"
Project = Callable[[str], FleetRecords]
WITH_TOKEN = 'metrics: {token: "${METRICS_TOKEN:-}"}\n'


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("METRICS_TOKEN", TOKEN)
    return lambda more: FleetRecords(tmp_path, more)


@pytest.fixture
def fleet(project: Project) -> FleetRecords:
    """A pipeline that is well, one that holds rows back, and one whose name of a source says nothing good."""
    fleet = project(WITH_TOKEN)
    for name in ("fine", "kept", "new"):
        fleet.pipeline(name, "freshness: 1 hour\nowner: ada\n" if name == "fine" else "")
    counts = Counts(read=10, malformed=2, fed=8, late=1, staged=8, published=8)
    fleet.ran("fine", verdict="pass", counts=counts, stop_reason="drained", phases={"query": 1_500_000})
    fleet.ran("kept", "failed", verdict="fail")
    fleet.held("kept", rows=1234)
    oldest = (datetime.now(UTC) - timedelta(minutes=10)).isoformat()
    fleet.waits("kept", offsets={"events": 7}, oldest=oldest, headroom=5_000.0)
    fleet.waits("new", files=0, bytes=0, too_old=0)
    fleet.record("fine", "kept", "new")
    return fleet


def ask(token: str | None = TOKEN, scheme: str = "Bearer") -> tuple[int, str]:
    headers = {} if token is None else {"Authorization": f"{scheme} {token}"}
    found = TestClient(app).get("/metrics", headers=headers)
    return found.status_code, found.text


def samples(text: str) -> dict[tuple[str, str], float]:
    """By name and the labels that are not empty."""
    found = {}
    for family in text_string_to_metric_families(text):
        for each in family.samples:
            found[each.name, ",".join(f"{k}={v}" for k, v in sorted(each.labels.items()))] = each.value
    return found


@pytest.mark.capability("SEE-12")
def test_every_figure_is_a_metric_and_zeros_are_said(fleet: FleetRecords) -> None:
    status, text = ask()
    assert status == 200
    found = samples(text)
    assert {name for name, _ in found} <= {CLUSTERS, *(family.name for family in FAMILIES)}
    fine, kept = "pipeline=fine", "pipeline=kept"
    assert found["drawdown_state", f"{fine},state=ok"] == 1
    assert found["drawdown_state", f"{fine},state=held"] == 0
    assert found["drawdown_state", f"{kept},state=retention at risk"] == 1, "worse than held"
    assert (found["drawdown_held_slices", fine], found["drawdown_held_rows", fine]) == (0, 0)
    assert (found["drawdown_held_slices", kept], found["drawdown_held_rows", kept]) == (1, 1234)
    assert found["drawdown_rows_total", f"kind=read,{fine}"] == 10
    assert found["drawdown_rows_total", f"kind=quarantined,{fine}"] == 0
    assert found["drawdown_late_rows_total", fine] == 1
    assert found["drawdown_run_set_aside_rows", fine] == 2
    assert found["drawdown_run_seconds", f"phase=query,{fine}"] == 1.5
    assert found["drawdown_freshness_promise_seconds", fine] == 3600
    assert found["drawdown_freshness_age_seconds", fine] < 60
    assert found["drawdown_last_published_seconds", fine] == pytest.approx(
        datetime.now(UTC).timestamp(), abs=60
    )
    assert found["drawdown_backlog", f"{kept},source=events,unit=offsets"] == 7
    assert found["drawdown_oldest_unread_seconds", f"{kept},source=events"] == pytest.approx(600, abs=30)
    assert 4_900 < found["drawdown_retention_headroom_seconds", f"{kept},source=events"] <= 5_000
    assert found["drawdown_backlog", "pipeline=new,source=events,unit=files"] == 0
    assert found["drawdown_oldest_unread_seconds", "pipeline=new,source=events"] == 0
    assert ("drawdown_last_published_seconds", "pipeline=new") not in found, "it has never published"
    assert found["drawdown_pipeline_info", f"dag_id=fine,group=,owner=ada,{fine}"] == 1


def test_without_a_token_of_the_project_the_address_says_how_to_get_one(project: Project) -> None:
    project("")
    status, text = ask()
    assert status == 404
    assert "metrics: {token:" in text


def test_an_empty_token_is_none(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("METRICS_TOKEN", "")
    project(WITH_TOKEN)
    assert ask("")[0] == 404


@pytest.mark.parametrize(
    ("token", "scheme"),
    [
        (None, ""),
        ("", "Bearer"),
        (TOKEN[:-1], "Bearer"),
        (f"{TOKEN}x", "Bearer"),
        (TOKEN, "Basic"),
        ("\u00e9", "Bearer"),
    ],
)
def test_whoever_has_not_the_token_learns_nothing(
    fleet: FleetRecords, token: str | None, scheme: str
) -> None:
    headers = {} if token is None else {"Authorization": f"{scheme} {token}".encode()}
    found = TestClient(app).get("/metrics", headers=headers)
    assert found.status_code == 401
    assert "kept" not in found.text
    assert found.headers["www-authenticate"].startswith("Bearer")


def test_the_token_may_be_the_password_of_an_airflow_connection(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project("metrics: {connection: scrape}\n")
    assert ask()[0] == 503
    monkeypatch.setenv("AIRFLOW_CONN_SCRAPE", f"generic://:{TOKEN}@")
    assert ask()[0] == 200
    assert ask("another-token-of-somebody")[0] == 401


def test_a_project_or_a_metastore_that_cannot_be_read_is_a_503_without_a_stack_trace(
    fleet: FleetRecords,
) -> None:
    fleet.metastore.close()
    (fleet.root / "m.db").write_text("this is no database")
    assert ask()[0] == 503
    assert ask("wrong")[0] == 401
    (fleet.root / "include/project.yaml").write_text("nonsense: [")
    status, text = ask("wrong")
    assert status == 503
    assert "nonsense" not in text


def test_hostile_text_stays_inside_its_label(project: Project) -> None:
    fleet = project(WITH_TOKEN)
    owner = 'ada"} 1 \\ <script>'
    fleet.pipeline("fine", f"owner: '{owner}'\n")
    fleet.record("fine")
    text = ask()[1]
    assert promtool("check", "metrics", given=text.encode()) == ""
    [family] = [f for f in text_string_to_metric_families(text) if f.name == "drawdown_pipeline_info"]
    assert family.samples[0].labels["owner"] == owner


def test_promtool_finds_nothing_to_say_of_names_and_texts(fleet: FleetRecords) -> None:
    text = ask()[1]
    assert promtool("check", "metrics", given=text.encode()) == ""
    documented = (Path(__file__).parents[2] / "docs/metrics.md").read_text()
    assert [f.name for f in FAMILIES if f"`{f.name}" not in documented] == []


def test_the_rules_of_the_documentation_are_those_that_are_shipped() -> None:
    documented = (Path(__file__).parents[2] / "docs/metrics.md").read_text()
    assert RULES.read_text() in documented


def _series(name: str, value: str, **labels: str) -> dict[str, str]:
    inside = ",".join(f'{key}="{label}"' for key, label in {"pipeline": "p", **labels}.items())
    return {"series": f"{name}{{{inside}}}", "values": value}


FIRES = {
    "DrawdownClusterNotGone": (
        [_series("drawdown_clusters", "2x200", state="not known to be gone")],
        "2 cluster(s) that no run needs are not known to be gone: their machines may be paid for",
    ),
    "DrawdownFailing": ([_series("drawdown_state", "1x200", state="failed")], "p fails"),
    "DrawdownHeld": (
        [_series("drawdown_held_slices", "2x200")],
        "p holds back 2 slices: release or discard them",
    ),
    "DrawdownStale": (
        [
            _series("drawdown_freshness_age_seconds", "7200x200"),
            _series("drawdown_freshness_promise_seconds", "3600x200"),
        ],
        "p has published nothing for 2h 0m 0s",
    ),
    "DrawdownLagging": (
        [_series("drawdown_oldest_unread_seconds", "7200x200", source="s")],
        "s of p: the oldest unread has waited for 2h 0m 0s",
    ),
    "DrawdownRetentionAtRisk": (
        [_series("drawdown_retention_headroom_seconds", "3600x200", source="s")],
        "The broker may delete unread records of s of p in 1h 0m 0s",
    ),
    "DrawdownRebuildWaiting": (
        [_series("drawdown_rebuild_waiting", "1x200")],
        "The rebuild of p waits for a decision",
    ),
    "DrawdownQuarantineGrowing": (
        [_series("drawdown_rows_total", "0+1x200", kind="quarantined")],
        "p set aside about 60 rows within an hour",
    ),
    "DrawdownLateRows": (
        [_series("drawdown_late_rows_total", "0+1x200")],
        "p read about 60 late rows within an hour",
    ),
    "DrawdownFiguresAreOld": (
        [_series("drawdown_figures_recorded_seconds", "0x200")],
        "Nothing was recorded about p for 2h 0m 0s: does drawdown__freshness run?",
    ),
}
QUIET = [
    _series("drawdown_state", "0x200", state="failed"),
    _series("drawdown_held_slices", "0x200"),
    _series("drawdown_freshness_age_seconds", "60x200"),
    _series("drawdown_freshness_promise_seconds", "3600x200"),
    _series("drawdown_oldest_unread_seconds", "0x200", source="s"),
    _series("drawdown_retention_headroom_seconds", "86400x200", source="s"),
    _series("drawdown_rebuild_waiting", "0x200"),
    _series("drawdown_rows_total", "5x200", kind="quarantined"),
    _series("drawdown_rows_total", "0+9x200", kind="read"),
    _series("drawdown_late_rows_total", "5x200"),
    _series("drawdown_figures_recorded_seconds", "0+60x200"),
]


@pytest.mark.capability("SEE-12")
def test_each_shipped_rule_fires_when_it_should_and_is_quiet_otherwise(tmp_path: Path) -> None:
    rules = {
        rule["alert"]: rule
        for group in yaml.safe_load(RULES.read_text())["groups"]
        for rule in group["rules"]
    }
    assert rules.keys() == FIRES.keys()
    tests = []
    for alert, (series, summary) in FIRES.items():
        source = {"source": "s"} if alert in ("DrawdownLagging", "DrawdownRetentionAtRisk") else {}
        whose = {} if alert == "DrawdownClusterNotGone" else {"pipeline": "p"}
        fired = {
            "exp_labels": {**whose, **source, "severity": rules[alert]["labels"]["severity"]},
            "exp_annotations": {
                "summary": summary,
                "do": re.sub(r"{{ .labels.pipeline }}", "p", rules[alert]["annotations"]["do"]),
            },
        }
        at = {"eval_time": "2h", "alertname": alert}
        tests.append({"input_series": series, "alert_rule_test": [{**at, "exp_alerts": [fired]}]})
        tests.append({"input_series": QUIET, "alert_rule_test": [{**at, "exp_alerts": []}]})
    described = {"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": tests}
    for each in tests:
        each["interval"] = "1m"
    (tmp_path / "test.yaml").write_text(yaml.safe_dump(described))
    promtool("check", "rules", str(RULES))
    assert "SUCCESS" in promtool("test", "rules", str(tmp_path / "test.yaml"))


@contextmanager
def served() -> Iterator[str]:
    """The pages on a real web server, below /drawdown as in Airflow's; yields host and port."""
    outer, port = FastAPI(), free_ports(1)[0]
    outer.mount("/drawdown", app)
    server = uvicorn.Server(uvicorn.Config(outer, "127.0.0.1", port, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(20)


@pytest.mark.capability("SEE-12")
def test_a_real_prometheus_scrapes_the_figures(fleet: FleetRecords, tmp_path: Path) -> None:
    with served() as address, prometheus(tmp_path, address, TOKEN) as server:
        [found] = server.wait_for('drawdown_held_rows{pipeline="kept"}')
        assert found["value"][1] == "1234"
        [up] = server.ask('up{job="drawdown"}')
        assert up["value"][1] == "1"
        fleet.held("new", rows=5)
        fleet.record("new")
        server.wait_for('drawdown_held_rows{pipeline="new"} == 5')
