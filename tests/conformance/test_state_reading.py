"""STATE: state and its metadata, read as `drawdown state` reads them."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict
from typing import Any

import pytest

from drawdown.cli.commands.maintenance.state import show
from drawdown.errors import RefusedError, SourceError, SpecError
from drawdown.recovery.spark_state_reader import StateReader, refuse_without_state
from drawdown.spec import load_pipeline
from drawdown.workspace import Generation, Workspace
from tests.support.command_line import answer
from tests.support.sandbox import Sandbox

WINDOWS = """
sources:
  events: {format: json, path: landing/events, schema: event.ddl, watermark: {column: at, delay: 1 hour}}
transform: transform.sql
sink: {format: delta, path: tables/out, schema: out.ddl}
state: {partitions: 2}
"""


def _rows(*events: str) -> list[dict[str, str]]:
    """Events as "10:05 a"."""
    return [{"at": f"2024-01-01T{e.split()[0]}:00Z", "k": e.split()[1]} for e in events]


def _reader(sandbox: Sandbox, name: str, batch: int | None = None) -> StateReader:
    assert sandbox.spark is not None
    with Workspace.open(sandbox.project) as workspace:
        generation = Generation.of(workspace, load_pipeline(sandbox.project, name))
        refuse_without_state(generation, batch)
    return StateReader(sandbox.spark.newSession(), generation.storage, generation.path, batch)


@pytest.mark.conformance("STATE-14")
def test_state_is_read_by_operator_by_key_and_at_a_batch(
    sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    sandbox.pipeline(
        "hourly",
        WINDOWS,
        event_ddl="at TIMESTAMP, k STRING",
        out_ddl="hour TIMESTAMP, k STRING, n BIGINT",
        transform_sql="SELECT window.start AS hour, k, count(*) AS n FROM events"
        " GROUP BY window(at, '1 hour'), k",
    )
    with pytest.raises(RefusedError, match="no checkpoint with a committed batch"):
        _reader(sandbox, "hourly")
    sandbox.land_json("landing/events/1.json", _rows("10:05 a", "10:10 a", "10:20 b"))
    sandbox.run("hourly")
    [store] = _reader(sandbox, "hourly").stores()
    first = store.last_batch
    sandbox.land_json("landing/events/2.json", _rows("10:30 a", "11:00 c"))
    sandbox.run("hourly")
    before = sandbox.everything()

    reader = _reader(sandbox, "hourly")
    [store] = reader.stores()
    assert (store.operator, store.name, store.store, store.partitions) == (0, "stateStoreSave", "default", 2)
    assert (store.keys, store.bytes > 0) == (3, True)
    assert [row["operatorName"] for row in reader.metadata()] == ["stateStoreSave"]

    assert {row["key"]["k"]: row["value"]["count"] for row in reader.read(0, None, None, 20)} == {
        "a": 3, "b": 1, "c": 1,
    }  # fmt: skip
    assert len(reader.read(0, None, None, 2)) == 2
    [row] = reader.read(0, "default", json.dumps({"k": "a", "window": {"start": "2024-01-01T10:00:00Z"}}), 20)
    assert row["value"] == {"count": 3}
    assert reader.read(0, None, '{"k": "z"}', 20) == []
    [row] = _reader(sandbox, "hourly", first).read(0, None, '{"k": "a"}', 20)
    assert row["value"] == {"count": 2}

    show([asdict(store)], as_json=False)
    show([row], as_json=False)
    table = capsys.readouterr().out
    assert "stateStoreSave" in table
    assert '{"count": 2}' in table
    show([row], as_json=True)
    assert answer(capsys.readouterr().out) == json.loads(json.dumps([row], default=str))
    assert sandbox.everything() == before, "reading writes nothing"
    _misses(sandbox, reader)

    # Elsewhere: of this checkpoint, Spark has the state in memory too.
    torn = sandbox.storage / "torn"
    shutil.copytree(sandbox.storage / "_drawdown/hourly/checkpoint-1", torn)
    for file in torn.glob("state/0/[01]/[0-9]*"):
        file.unlink()
    with pytest.raises(SourceError, match="Spark could not read the state") as unreadable:
        StateReader(reader.session, reader.storage, "torn").read(0, None, None, 20)
    assert unreadable.value.id == "state.unreadable"


def _misses(sandbox: Sandbox, reader: StateReader) -> None:
    asked: list[tuple[Any, ...]] = [
        ("state.no-operator", 1, None, None, "the stateful operators are 0 (stateStoreSave)"),
        ("state.no-store", 0, "left", None, "its stores are default"),
        ("state.no-key", 0, None, "a", "write it as"),
        ("state.no-key", 0, None, '{"kk": "a"}', "write it as"),
    ]
    for id, operator, store, key, do in asked:
        with pytest.raises(SpecError) as caught:
            reader.read(operator, store, key, 20)
        assert caught.value.id == id
        assert do in caught.value.do
    with pytest.raises(RefusedError) as refusal:
        _reader(sandbox, "hourly", 99)
    assert refusal.value.id == "state.no-batch"


JOIN = """
sources:
  orders: {format: json, path: landing/orders, schema: order.ddl, watermark: {column: at, delay: 1 hour}}
  payments:
    {format: json, path: landing/payments, schema: payment.ddl, watermark: {column: paid, delay: 1 hour}}
transform: transform.sql
sink: {format: delta, path: tables/out, schema: out.ddl}
state: {partitions: 2}
"""


@pytest.mark.full
@pytest.mark.conformance("STATE-15")
def test_the_stores_of_both_sides_of_a_join_are_readable(sandbox: Sandbox) -> None:
    sandbox.pipeline(
        "paid",
        JOIN,
        order_ddl="at TIMESTAMP, id INT",
        payment_ddl="paid TIMESTAMP, order_id INT, amount INT",
        out_ddl="id INT, amount INT",
        transform_sql="SELECT id, amount FROM orders JOIN payments"
        " ON id = order_id AND paid BETWEEN at AND at + INTERVAL 2 HOURS",
    )
    sandbox.land_json("landing/orders/1.json", [{"at": "2024-01-01T10:00:00Z", "id": i} for i in (1, 2)])
    sandbox.land_json(
        "landing/payments/1.json",
        [
            {"paid": "2024-01-01T10:30:00Z", "order_id": i, "amount": a}
            for i, a in ((1, 10), (1, 11), (3, 30))
        ],
    )
    sandbox.run("paid")
    sandbox.land_json("landing/orders/2.json", [{"at": "2024-01-01T10:10:00Z", "id": 3}])
    sandbox.run("paid")
    assert sandbox.delta("tables/out") == [(1, 10), (1, 11), (3, 30)]

    reader = _reader(sandbox, "paid")
    assert {store.store: store.keys for store in reader.stores()} == {
        "left-keyToNumValues": 3,
        "left-keyWithIndexToValue": 3,
        "right-keyToNumValues": 2,
        "right-keyWithIndexToValue": 3,
    }

    def read(store: str, key: str | None = None) -> list[dict[str, Any]]:
        return reader.read(0, store, key, 20)

    assert _numbers(read("left-keyToNumValues")) == {1: 1, 2: 1, 3: 1}
    assert _numbers(read("right-keyToNumValues")) == {1: 2, 3: 1}
    assert sorted(row["value"]["id"] for row in read("left-keyWithIndexToValue")) == [1, 2, 3]
    paid = read("right-keyWithIndexToValue", '{"field0": 1}')
    assert sorted((row["key"]["index"], row["value"]["amount"]) for row in paid) == [(0, 10), (1, 11)]
    # One side as rows, whatever stores Spark keeps them in.
    assert sorted(row["value"]["amount"] for row in read("right")) == [10, 11, 30]


def _numbers(rows: list[dict[str, Any]]) -> dict[int, int]:
    """Of a keyToNumValues store: key to how many values it has."""
    return {row["key"]["field0"]: row["value"]["value"] for row in rows}
