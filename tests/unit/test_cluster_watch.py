"""A lost cluster ends Spark, whatever goes wrong while its loss is told."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from drawdown.application import cluster_watch
from drawdown.application.cluster_watch import ClusterWatch
from drawdown.processes.ports import free_ports


@pytest.mark.parametrize("fails", [False, True])
def test_spark_is_stopped_when_its_master_is_gone(monkeypatch: pytest.MonkeyPatch, fails: bool) -> None:
    monkeypatch.setattr(cluster_watch, "MASTER_WITHIN", 0.05)
    monkeypatch.setattr(cluster_watch, "_LOOK_EVERY", 0.01)
    [port] = free_ports(1)
    stopped = threading.Event()
    told: list[tuple[str, bool]] = []

    def lost(what: str) -> None:
        told.append((what, stopped.is_set()))
        if fails:
            raise RuntimeError("the metastore is gone, too")

    context: Any = SimpleNamespace(
        master=f"spark://127.0.0.1:{port}",
        getConf=lambda: {},
        _jsc=SimpleNamespace(sc=lambda: SimpleNamespace(stop=stopped.set)),
    )
    session: Any = SimpleNamespace(sparkContext=context)
    watch = ClusterWatch(session, lost, own=False)
    watch.start()
    assert stopped.wait(20)
    what = f"the master spark://127.0.0.1:{port} has not answered for 0 s"
    assert told == [(what, False)], "told once, while Spark can still be asked"
