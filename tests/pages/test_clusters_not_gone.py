"""A cluster that is not known to be gone stays red until `down` succeeds or a person says that it is gone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from drawdown.airflow.pages.app import app
from drawdown.airflow.tasks.overdue_clusters import EndOverdueOperator
from drawdown.airflow.tasks.task_failures import TaskFailed
from drawdown.fleet.started_clusters import red_clusters
from drawdown.launch.commands.life import to_end
from drawdown.metastore.records import StartedCluster
from drawdown.observe.alerts.clusters import changes_of_clusters
from tests.pages.conftest import Ask
from tests.support.cellar import PROFILE, written
from tests.support.command_line import answer, drawdown
from tests.support.fleet_records import FleetRecords

pytestmark = pytest.mark.capability("SAFE-09")

TOKEN = "0123456789abcdef-metrics"
NAME = "drawdown-flights-run-1-0a1b2-0123456789ab"
HOSTILE = "<script>alert(1)</script>"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FleetRecords]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("METRICS_TOKEN", TOKEN)
    more = PROFILE.format(workers=1, more="shared_disk: true") + 'metrics: {token: "${METRICS_TOKEN}"}\n'
    found = FleetRecords(tmp_path, more)
    written(tmp_path, {"up": "#!/bin/sh\n", "alive": "#!/bin/sh\n", "down": "#!/bin/sh\nexit 7\n"})
    now = found.metastore.now()
    cluster = StartedCluster(
        "0123456789ab", "flights.run-1", NAME, "cellar", "clusters/down", 1, 1, "600m", {"dag_id": "flights"},
        begun_at=now, up_by=now, deadline=now + timedelta(hours=4), state="unknown", tries=3,
        next_try_at=now + timedelta(minutes=2), last_error=f"`down` said {HOSTILE}",
    )  # fmt: skip
    found.metastore.clusters.begin(cluster, to_end)
    yield found
    found.metastore.close()


def scraped() -> list[str]:
    text = TestClient(app).get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"}).text
    return [line for line in text.splitlines() if line.startswith("drawdown_clusters{")]


def test_it_is_red_on_the_page_for_whoever_may_read_its_dag_and_in_the_metrics(
    project: FleetRecords, as_reader_of: Ask
) -> None:
    project.pipeline("fine")
    text = as_reader_of("flights").get("/fleet").text
    assert f"{NAME} of flights.run-1 (cellar) is not known to be gone" in text
    assert "was called 3 times" in text
    assert "<script>" not in text.replace("<script src", "")
    assert f"drawdown clusters end {NAME}" in text
    assert NAME not in as_reader_of("fine").get("/fleet").text
    assert 'drawdown_clusters{state="not known to be gone"} 1.0' in scraped()
    assert 'drawdown_clusters{state="up"} 0.0' in scraped()


def test_targets_hear_of_it_once_and_once_that_it_is_over(project: FleetRecords) -> None:
    store, now = project.metastore.announcements, project.metastore.now()
    [told] = changes_of_clusters(red_clusters(project.metastore), [], ["team"], now)
    assert (told.pipeline, told.alert, told.target) == (NAME, "cluster", "team")
    store.keep([replace(told, told_at=now)])
    assert changes_of_clusters(red_clusters(project.metastore), store.read(), ["team"], now) == []
    project.metastore.clusters.change("0123456789ab", lambda found, now: None)
    [over] = changes_of_clusters(red_clusters(project.metastore), store.read(), ["team"], now)
    assert over.ended_at == now


def test_the_project_s_dag_calls_down_again_and_fails_until_it_has_succeeded(project: FleetRecords) -> None:
    task = EndOverdueOperator(task_id="end-overdue-clusters", project_root=str(project.root))
    store = project.metastore.clusters
    for tries in (3, 4):
        with pytest.raises(TaskFailed) as failed:
            task.execute({})
        assert "is not known to be gone" in str(failed.value)
        assert not failed.value.permanent
        found = store.read("0123456789ab")
        assert found is not None
        assert found.tries == tries, "not before its pause is over"
        store.change(found.instance, lambda each, now: replace(each, next_try_at=now))
    written(project.root, {"down": "#!/bin/sh\nexit 0\n"})
    task.execute({})
    assert store.standing() == []


def test_the_command_lists_ends_and_takes_a_persons_word(project: FleetRecords) -> None:
    listed = answer(drawdown(project.root, "clusters", "list", "--json").stdout)["clusters"]
    assert [(each["name"], each["state"]) for each in listed] == [(NAME, "not known to be gone")]
    assert NAME in drawdown(project.root, "clusters", "list").stdout.replace("\n", "")
    ended = drawdown(project.root, "clusters", "end", NAME)
    assert ended.returncode == 8
    assert "is not ended: `down` ended with exit code 7" in ended.stdout
    assert "clusters.unasked" in drawdown(project.root, "clusters", "gone", NAME).stderr
    assert "clusters.unknown" in drawdown(project.root, "clusters", "gone", "other", "--yes").stderr
    assert drawdown(project.root, "clusters", "gone", NAME, "--yes").returncode == 0
    assert project.metastore.clusters.standing() == []
    assert "no cluster" in drawdown(project.root, "clusters", "list").stdout
