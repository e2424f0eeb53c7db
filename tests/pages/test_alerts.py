"""Alerts: once when a state begins, once when it is over, to real receivers that may be away."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from drawdown.airflow.tasks.figures import AlertsOperator, FiguresOperator
from drawdown.airflow.tasks.task_failures import WorthRetrying
from drawdown.errors import SpecError
from drawdown.metastore.records import Counts
from drawdown.spec import load_pipeline, load_project
from tests.support.alert_receivers import MailServer, Webhook
from tests.support.fleet_records import FleetRecords

TARGETS = """
alert_targets:
  hook: {url: "${HOOK}"}
  mail: {url: "${MAIL}"}
alerts: {to: [hook], lagging_after: 1 hour}
"""
BASE = "https://airflow.example.org/team"


@pytest.fixture
def hook() -> Iterator[Webhook]:
    with Webhook() as started:
        yield started


@pytest.fixture
def mail() -> Iterator[MailServer]:
    with MailServer() as started:
        yield started


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hook: Webhook, mail: MailServer) -> FleetRecords:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOOK", hook.address)
    monkeypatch.setenv("MAIL", mail.address)
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", BASE)
    return FleetRecords(tmp_path, TARGETS)


def schedule(fleet: FleetRecords) -> None:
    """What the DAG `drawdown__freshness` does on its schedule."""
    context: Any = {}
    FiguresOperator(task_id="figures", project_root=str(fleet.root)).execute(context)
    AlertsOperator(task_id="alerts", project_root=str(fleet.root)).tell()


def failed(fleet: FleetRecords, name: str, what: str = "no such column") -> None:
    error = {"id": "transform.failed", "what": what, "where": "", "do": "look"}
    fleet.ran(name, "failed", error=error)


def went_well(fleet: FleetRecords, name: str, **counts: int) -> None:
    rows = Counts(**{"read": 7, "fed": 7, "staged": 7, "published": 7, **counts})
    fleet.ran(name, verdict="pass", counts=rows, stop_reason="drained")


@pytest.mark.capability("SEE-14")
def test_a_state_is_told_once_when_it_begins_and_once_when_it_is_over(
    fleet: FleetRecords, hook: Webhook
) -> None:
    fleet.pipeline("orders")
    went_well(fleet, "orders")
    schedule(fleet)
    assert hook.said == [], "all is well"
    failed(fleet, "orders")
    for _ in range(3):
        schedule(fleet)
    address = f"{BASE}/dags/orders"
    assert hook.said == [("orders: failing", f"orders failed: transform.failed: no such column\n{address}")]
    failed(fleet, "orders", "another reason")
    schedule(fleet)
    assert len(hook.said) == 1, "the state has not changed"
    went_well(fleet, "orders")
    for _ in range(2):
        schedule(fleet)
    assert len(hook.said) == 2
    title, text = hook.said[-1]
    assert title == "orders: failing is over"
    assert text.startswith("orders: failing is over since 20")
    assert [each["type"] for each in hook.documents] == ["warning", "success"]
    failed(fleet, "orders")
    schedule(fleet)
    assert len(hook.said) == 3, "a new failure is a new change"


def test_a_run_that_goes_on_neither_confirms_nor_ends_a_failure(fleet: FleetRecords, hook: Webhook) -> None:
    fleet.pipeline("orders")
    failed(fleet, "orders")
    schedule(fleet)
    lease = fleet.leased("orders", "1")
    fleet.ran("orders", "running")
    schedule(fleet)
    assert len(hook.said) == 1, "nobody knows yet"
    fleet.metastore.finish_run("orders-1", "failed", error={"id": "a", "what": "b", "where": "", "do": ""})
    fleet.metastore.release(lease)
    schedule(fleet)
    assert len(hook.said) == 1, "it failed before, and it fails now"


@pytest.mark.capability("SEE-14")
def test_each_state_has_its_sentence_and_its_page(fleet: FleetRecords, hook: Webhook) -> None:
    for name in ("kept", "late", "behind", "risky", "noisy", "broken"):
        fleet.pipeline(name, "freshness: 1 second\n" if name == "late" else "")
    (fleet.root / "include/pipelines/broken/pipeline.yaml").write_text("sources: 1\n")
    fleet.ran("kept", "failed", verdict="fail")
    fleet.held("kept", rows=1234)
    went_well(fleet, "late")
    oldest = (datetime.now(UTC) - timedelta(hours=5)).isoformat()
    for name in ("behind", "risky"):
        went_well(fleet, name)
    fleet.waits("behind", files=3, bytes=9, too_old=0, oldest=oldest)
    fleet.waits("risky", offsets={"t": 9}, oldest=datetime.now(UTC).isoformat(), headroom=3_599.0)
    went_well(fleet, "noisy", read=900, malformed=200)
    time.sleep(1.1)  # longer than the promise of `late`
    schedule(fleet)
    said = dict(hook.said)
    assert said.keys() == {
        "kept: held", "late: stale", "behind: lagging", "risky: retention", "noisy: quarantine",
        "broken: failing",
    }  # fmt: skip
    assert said["kept: held"].startswith(
        "kept holds back 1 slice with 1,234 rows: release or discard before 20"
    )
    assert said["kept: held"].endswith(f"\n{BASE}/dags/drawdown__decide")
    assert "`freshness:` is 1 second" in said["late: stale"]
    behind = said["behind: lagging"]
    assert behind.startswith("behind is behind: 3 files wait at events, the oldest for 5 hours")
    assert said["risky: retention"].startswith(
        "risky may lose rows: the broker deletes unread records of events in 59 minutes"
    )
    assert said["noisy: quarantine"].startswith("noisy set aside 200 rows in its newest run, of 900 read")
    assert said["broken: failing"].startswith("broken was refused: spec.")


def test_a_pipeline_says_of_what_and_to_whom(fleet: FleetRecords, hook: Webhook, mail: MailServer) -> None:
    fleet.pipeline("orders", "alerts: {to: [mail]}\n")
    fleet.pipeline("clicks", "alerts: {when: [held]}\n")
    fleet.pipeline("quiet", "alerts: {to: []}\n")
    for name in ("orders", "clicks", "quiet"):
        failed(fleet, name, "lost\r\nBcc: everybody@example.org")
    schedule(fleet)
    assert hook.said == []
    [(subject, text)] = mail.mails
    assert subject == "orders: failing"
    assert "orders failed: transform.failed: lost" in text
    assert f"{BASE}/dags/orders" in text


def test_a_reason_that_looks_like_html_is_text_in_a_mail(
    fleet: FleetRecords, mail: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAIL", mail.address.replace("format=text", "format=html"))
    fleet.pipeline("orders", "alerts: {to: [mail]}\n")
    failed(fleet, "orders", "<script>alert(1)</script> <img src=x>")
    schedule(fleet)
    [mail_text] = mail.htmls
    assert "&lt;script&gt;" in mail_text
    assert "<script" not in mail_text
    assert "<img" not in mail_text


@pytest.mark.capability("SEE-14")
def test_a_target_that_is_down_is_told_by_the_next_schedule_and_keeps_nobody_else_waiting(
    fleet: FleetRecords, hook: Webhook, mail: MailServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    fleet.pipeline("orders", "alerts: {to: [hook, mail]}\n")
    failed(fleet, "orders")
    hook.status = 500
    with pytest.raises(WorthRetrying) as down:
        schedule(fleet)
    assert "alerts.undelivered: the alert target hook did not take a message" in str(down.value)
    assert len(mail.mails) == 1
    hook.status = 200
    schedule(fleet)
    schedule(fleet)
    assert [title for title, _ in hook.said] == ["orders: failing"]
    assert len(mail.mails) == 1
    assert "very-secret-word" not in caplog.text + str(down.value)


def test_what_began_and_ended_while_its_target_hung_is_not_lost(fleet: FleetRecords, hook: Webhook) -> None:
    fleet.pipeline("orders")
    failed(fleet, "orders")
    hook.hangs.set()
    began = time.monotonic()
    with pytest.raises(WorthRetrying):
        schedule(fleet)
    assert time.monotonic() - began < 20
    went_well(fleet, "orders")
    hook.hangs.clear()
    schedule(fleet)
    schedule(fleet)
    [(title, text)] = hook.said
    assert title == "orders: failing is over"
    assert "orders failed: transform.failed: no such column" in text


def test_many_changes_at_once_are_one_message(fleet: FleetRecords, hook: Webhook) -> None:
    for number in range(12):
        fleet.pipeline(f"p{number}")
        failed(fleet, f"p{number}")
    schedule(fleet)
    schedule(fleet)
    [(title, text)] = hook.said
    assert title == "Drawdown: 12 changes of state"
    assert text.count(f"{BASE}/dags/p") == 12


@pytest.mark.capability("SEE-15")
def test_a_run_that_hangs_does_not_silence_that_its_pipeline_is_stale(
    fleet: FleetRecords, hook: Webhook
) -> None:
    fleet.pipeline("orders", "freshness: 1 second\n")
    went_well(fleet, "orders")
    fleet.leased("orders", "1")
    fleet.ran("orders", "running")
    time.sleep(1.1)  # longer than its promise
    schedule(fleet)
    [(title, text)] = hook.said
    assert title == "orders: stale"
    assert "orders has published nothing for" in text


def test_of_a_pipeline_or_target_that_is_gone_nobody_hears_again(fleet: FleetRecords, hook: Webhook) -> None:
    fleet.pipeline("orders")
    failed(fleet, "orders")
    schedule(fleet)
    spec = fleet.root / "include/pipelines/orders/pipeline.yaml"
    spec.write_text(spec.read_text() + "alerts: {when: [held]}\n")
    schedule(fleet)
    assert fleet.metastore.announcements.read() == []
    assert len(hook.said) == 1, "nobody asked for it any more, so its end is not told"


@pytest.mark.parametrize("address", ["", "nonsense", "unknown://host"])
def test_an_address_that_is_none_is_named_by_its_target_alone(
    fleet: FleetRecords, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setenv("HOOK", address)
    fleet.pipeline("orders")
    failed(fleet, "orders")
    with pytest.raises(WorthRetrying) as refused:
        schedule(fleet)
    assert "alerts.address: the alert target hook has no address" in str(refused.value)
    assert not address or address not in str(refused.value)


def test_the_address_may_be_the_password_of_an_airflow_connection(
    fleet: FleetRecords, hook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = fleet.root / "include/project.yaml"
    path.write_text(path.read_text().replace('hook: {url: "${HOOK}"}', "hook: {connection: team_hook}"))
    fleet.pipeline("orders")
    failed(fleet, "orders")
    with pytest.raises(WorthRetrying) as refused:
        schedule(fleet)
    assert "airflow.no-connection" in str(refused.value)
    monkeypatch.setenv(
        "AIRFLOW_CONN_TEAM_HOOK", '{"conn_type": "generic", "password": "' + hook.address + '"}'
    )
    schedule(fleet)
    assert len(hook.said) == 1


def test_without_the_library_the_error_says_how_to_get_it(
    fleet: FleetRecords, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet.pipeline("orders")
    failed(fleet, "orders")
    monkeypatch.setitem(__import__("sys").modules, "apprise", None)
    with pytest.raises(WorthRetrying) as refused:
        schedule(fleet)
    assert "alerts.no-library" in str(refused.value)
    assert "pip install 'drawdown[alerts]'" in str(refused.value)


def test_a_target_that_does_not_exist_is_refused_with_its_line(fleet: FleetRecords) -> None:
    fleet.pipeline("orders", "alerts: {to: [huk]}\n")
    with pytest.raises(SpecError) as refused:
        load_pipeline(load_project(fleet.root), "orders")
    assert refused.value.id == "spec.unknown-target"
    assert "pipeline.yaml:" in refused.value.where
    assert "hook" in refused.value.what
    path = fleet.root / "include/project.yaml"
    path.write_text(path.read_text().replace("to: [hook]", "to: [huk]"))
    with pytest.raises(SpecError, match=r"spec\.unknown-target"):
        load_project(fleet.root)


def test_addresses_and_tokens_are_not_written_into_the_file(fleet: FleetRecords) -> None:
    path = fleet.root / "include/project.yaml"
    text = path.read_text()
    path.write_text(text.replace('"${HOOK}"', "slack://T/B/secret"))
    with pytest.raises(SpecError, match=r"spec\.secret"):
        load_project(fleet.root)
    path.write_text(text + "metrics: {token: 0123456789abcdef0123}\n")
    with pytest.raises(SpecError, match=r"spec\.secret"):
        load_project(fleet.root)
