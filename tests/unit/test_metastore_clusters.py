"""Records of clusters: one for each instance, and what programs before schema 0016 have left."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest
from sqlalchemy import text

from drawdown.launch.commands.life import to_end
from drawdown.metastore import Metastore
from drawdown.metastore.records import StartedCluster
from drawdown.metastore.tables import VERSION_TABLE

pytestmark = pytest.mark.capability("SAFE-09")

OLD = """INSERT INTO clusters
VALUES (:key, 'cellar', 'clusters/down', 2, 1, '600m', '{"dag_id": "a"}', :until, :answer)"""


def record(metastore: Metastore, instance: str, key: str = "a.run") -> StartedCluster:
    now = metastore.now()
    return StartedCluster(
        instance, key, f"drawdown-a-{instance}", "cellar", "clusters/down", 2, 1, "600m", {"dag_id": "a"},
        begun_at=now, up_by=now, deadline=now + timedelta(hours=4),
    )  # fmt: skip


def test_another_instance_of_a_run_replaces_the_one_before_and_each_is_removed_alone(
    metastore: Metastore,
) -> None:
    store = metastore.clusters
    store.begin(record(metastore, "one"), to_end)
    store.begin(record(metastore, "other", "b.run"), to_end)
    store.begin(record(metastore, "two"), to_end)
    assert [(each.instance, each.state) for each in store.of_key("a.run")] == [
        ("one", "ending"), ("two", "starting"),
    ]  # fmt: skip
    assert store.live("a.run") == store.read("two")
    assert store.change("one", lambda found, now: None) is None
    assert [each.instance for each in store.standing()] == ["two", "other"]
    assert store.change("one", to_end) is None, "what is gone stays gone"


@pytest.mark.capability("OWN-02")
@pytest.mark.capability("OWN-03")
def test_an_upgrade_takes_over_the_clusters_of_older_programs_by_the_names_that_these_gave(
    store_url: str,
) -> None:
    key = "flights.scheduled__2024-01-01T00:00:00+00:00"
    until = int(time.time() + 3600) * 1_000_000
    with Metastore.open(store_url) as store, store._writer.begin() as conn:
        for table in ("cluster_instances", "claims"):
            conn.execute(text(f"DROP TABLE {table}"))
        conn.execute(text("ALTER TABLE batches DROP COLUMN treatment"))
        for column in ("judging", "begun_batch"):
            conn.execute(text(f"ALTER TABLE checkpoints DROP COLUMN {column}"))
        conn.execute(text(OLD), {"key": key, "until": until, "answer": '{"master": "spark://a:7077"}'})
        conn.execute(text(OLD), {"key": "b", "until": until, "answer": None})
        conn.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '0015'"))
    Metastore.upgrade(store_url)
    with Metastore.open(store_url) as store:
        up, starting = (store.clusters.live(each) for each in (key, "b"))
        assert up is not None
        assert starting is not None
        assert up.name == "drawdown-flights-scheduled-2024-0-" + up.name[-10:]
        assert (up.state, up.answer, up.asked_by) == ("up", {"master": "spark://a:7077"}, {"dag_id": "a"})
        assert starting.state == "starting"
        assert up.deadline.timestamp() == until / 1_000_000
        assert up.instance != starting.instance


@pytest.mark.capability("OWN-02")
def test_what_the_release_before_records_later_and_does_not_end_is_taken_over(metastore: Metastore) -> None:
    late = timedelta(seconds=60)
    now = int(metastore.now().timestamp()) * 1_000_000
    with metastore._writer.begin() as conn:
        conn.execute(text(OLD), {"key": "late", "until": now - 61_000_000, "answer": None})
        conn.execute(text(OLD), {"key": "in time", "until": now, "answer": None})
    metastore.clusters.adopt(late)
    assert [each.cluster_key for each in metastore.clusters.standing()] == ["late"]
    metastore.clusters.adopt(late)
    assert len(metastore.clusters.standing()) == 1
    metastore.clusters.adopt(late, "in time")
    assert len(metastore.clusters.of_key("in time")) == 1, "by the end of its own run"
