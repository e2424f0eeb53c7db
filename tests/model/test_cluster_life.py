"""No machine stands past its time, none is ended that another uses: any order, any death, two deployments."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from sqlalchemy import delete

from drawdown.errors import SourceError
from drawdown.launch.commands import life, request
from drawdown.launch.commands.guard import ClusterGuard, ReconnectingStore
from drawdown.launch.commands.reaper import overdue
from drawdown.launch.commands.request import CommandsRequest
from drawdown.metastore import Metastore
from drawdown.metastore.operations import clusters as operations
from drawdown.metastore.tables import clusters
from tests.model.cluster_life import PROFILE, Calm, Pipe, Store, World, Wrong, stores_of, walk

pytestmark = pytest.mark.capability("SAFE-09")


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[list[Metastore]]:
    found = stores_of(tmp_path)
    yield found
    for each in found:
        each.close()


@pytest.mark.capability("SAFE-10")
def test_a_thousand_steps(stores: list[Metastore], monkeypatch: pytest.MonkeyPatch) -> None:
    taken = walk(stores, monkeypatch, 1, 1_000)
    assert set(taken) >= {"clear", "failed", "delete", "kill", "host lost", "suspend", "cloud", "preflight"}


@pytest.mark.full
@pytest.mark.timeout(1200)
def test_ten_thousand_steps(stores: list[Metastore], monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(walk(stores, monkeypatch, 2, 10_000)) == 10_000


@pytest.mark.parametrize("wrong", ["by key", "never again", "shared name"])
def test_it_finds_what_was_wrong_before(
    stores: list[Metastore], monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    if wrong == "by key":
        write = operations._write

        def by_key(conn, before, after):  # type: ignore[no-untyped-def]
            if after is not None:
                return write(conn, before, after)
            return conn.execute(delete(clusters).where(clusters.c.cluster_key == before.cluster_key))

        monkeypatch.setattr(operations, "_write", by_key)
        says = "nobody knows it"
    elif wrong == "never again":
        late = timedelta(days=10)
        monkeypatch.setattr(
            life,
            "_failed",
            lambda why: lambda found, now: replace(found, state="ending", next_try_at=now + late),
        )
        says = "stand past their ttl"
    else:
        monkeypatch.setattr(request, "_name", lambda key, root, instance: f"drawdown-{key}")
        says = "is used by"
    with pytest.raises(Wrong, match=says):
        walk(stores, monkeypatch, 3, 10_000)


def test_a_guard_that_is_cut_off_from_the_metastore_ends_the_machines_and_notes_it_later(
    stores: list[Metastore],
) -> None:
    world = World(random.Random(1), stores)
    world.chance = cast(random.Random, Calm())
    [here, _] = world.deployments
    world.now = here.metastore.now()
    asked = CommandsRequest(here.project, "cellar", PROFILE, "flights.run", 1, {})
    begun = asked.record(world.now)
    here.metastore.clusters.begin(begun, asked.replaces)
    store, pipe = CutOff(here.metastore), Pipe()
    guard = ClusterGuard(
        cast(ReconnectingStore, store), begun.instance, lambda each: world.programs(here, each), pipe
    ).steps()
    while not pipe.heard:
        next(guard)
    assert begun.name in world.machines
    store.away = pipe.gone = True
    while world.machines:
        next(guard)
    assert here.metastore.clusters.read(begun.instance) is not None
    store.away = False
    here.metastore.clusters.change(begun.instance, life.to_end)
    for cluster in overdue(here.metastore):
        life.end(here.metastore.clusters, cluster, world.programs(here, cluster))
    assert here.metastore.clusters.standing() == []


class CutOff(Store):
    """The records, for a host whose network may be away."""

    away = False

    def __getattribute__(self, name: str) -> Any:
        if name in ("read", "change", "restore") and object.__getattribute__(self, "away"):
            raise SourceError("metastore.unreachable", "the network is away", do="-")
        return super().__getattribute__(name)
