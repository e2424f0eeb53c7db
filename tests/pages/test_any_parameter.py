"""Every page, with whatever somebody puts into its address: never an error of the server."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote_from_bytes

import pytest
from fastapi.dependencies.utils import get_flat_dependant
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient
from pendulum import instance
from sqlalchemy import Engine, event

from drawdown.airflow.pages.app import app
from tests.pages.conftest import Ask
from tests.support import odd_values
from tests.support.fleet_records import FleetRecords
from tests.support.pipeline_history import history
from tests.support.quarantine_rows import set_rows_aside
from tests.support.replayed_days import day, drained, replayable, replayed

pytestmark = pytest.mark.capability("SAFE-08")

KNOWN = {
    "dag_id": ("orders", "daily", "shop", "drawdown__upkeep", "orders__replay", "another"),
    "pipeline": ("orders", "daily", "one", "two", "another"),
    "dag_run_id": ("scheduled__2026-01-31T00:00:00+00:00", "scheduled__2026-01-31T02:00:00+00:00", "x/y"),
    "page": ("index.html", "a.html", "1", "2"),
    "reason": ("small", "malformed"),
    "run": ("orders-0", "orders-1"),
    "state": ("ok", "held", "failed"),
    "format": ("json", "html", "xml"),
    "around": ("orders", "daily"),
    "runs": ("20", "50", "100"),
}
"""What leads behind the first look, by the name of the parameter; a new page works without."""
MOST_STATEMENTS = 60
"""Of one page, whatever is asked: nothing that somebody writes there makes it a page of many reads."""
EVERYWHERE = ("format",)
"""Read by all pages from the address itself, so no route declares it."""


def routes() -> list[APIRoute]:
    """Every route of the application, as it lists them itself."""
    return [route for route in app.routes if isinstance(route, APIRoute)]


def test_the_application_has_no_route_of_a_kind_that_is_not_asked() -> None:
    others = [route for route in app.routes if not isinstance(route, APIRoute)]
    assert [getattr(route, "path", "") for route in others] == ["/static"]
    assert len(routes()) >= 9


@pytest.fixture
def client(fleet: FleetRecords, as_reader_of: Ask) -> TestClient:
    """For somebody who may read whatever DAG they name."""
    from drawdown.airflow.pages.access import may_read_runs

    history(fleet, "orders")
    (fleet.root / "include/pipelines/orders/quality.yaml").write_text(
        "rules: [{name: small, check: amount < 90, on_fail: quarantine}]\n"
    )
    set_rows_aside(fleet, "orders", 0, (["small"], None, json.dumps({"amount": 95})))
    replayable(fleet, "daily")
    drained(fleet, "daily", (day(1), day(4)), watermark=day(9))
    replayed(fleet, "daily", day(5), day(7))
    for name in ("one", "two"):
        fleet.pipeline(name, "group: shop\n")
        fleet.ran(name)
    fleet.record("orders", "daily", "one", "two")
    as_reader_of("orders", "daily", "shop", "one", "two")
    app.dependency_overrides[may_read_runs] = lambda: None
    return TestClient(app, root_path="/drawdown", raise_server_exceptions=False, follow_redirects=False)


@pytest.mark.parametrize("route", routes(), ids=lambda route: route.path)
@pytest.mark.parametrize(
    "times", [25, pytest.param(1_000, marks=[pytest.mark.full, pytest.mark.timeout(900)])]
)
def test_no_parameter_makes_a_page_fail(client: TestClient, route: APIRoute, times: int) -> None:
    failed, refused = [], set()
    for number in range(times):
        chance = random.Random(f"{route.path} {number}")
        address, headers = _address(chance, route), _headers(chance)
        for method in sorted(route.methods):
            with _statements() as said:
                found = client.request(method, address, headers=headers)
            if found.status_code >= 500 or "Traceback" in found.text or len(said) > MOST_STATEMENTS:
                failed.append((method, found.status_code, len(said), address[:300], headers))
            if found.status_code == 400:
                refused.add("page.parameter" in found.text and "links of the fleet page" in found.text)
                assert not said, "refused before a record is read"
            assert found.status_code != 422, "FastAPI's own answer has no id"
    assert not failed
    assert refused <= {True}


@pytest.mark.parametrize(
    "until", ["0001-01-01T00:00:00+14:00", "0001-01-12T08:00:00Z", "9999-12-31T23:59:59-14:00"]
)
def test_a_calendar_until_a_time_beyond_the_calendar(client: TestClient, until: str) -> None:
    found = client.get("/calendar/daily", params={"until": until, "format": "json"})
    assert found.status_code == 200
    assert len(found.json()["calendar"]["rows"]) == 13


def test_rows_at_the_ends_of_the_calendar_are_shown(fleet: FleetRecords, as_reader_of: Ask) -> None:
    """A supplier of data writes event times: statistics of files have years that Python does not."""
    first, last = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
    replayable(fleet, "daily")
    drained(fleet, "daily", (first, day(2)), (day(3), last), watermark=day(9))
    replayable(fleet, "later")
    drained(fleet, "later", (day(3), day(4)), watermark=last)
    replayed(fleet, "later", first, last)
    fleet.record("daily", "later")
    client = as_reader_of("daily", "later")
    for address in ("/calendar/daily", "/calendar/later", "/dags/daily", "/dags/later", "/fleet", "/graph"):
        assert client.get(address).status_code == 200, address


def test_a_calendar_of_short_intervals_is_bounded(fleet: FleetRecords, as_reader_of: Ask) -> None:
    replayable(fleet, "daily")
    spec = fleet.root / "include/pipelines/daily/pipeline.yaml"
    spec.write_text(spec.read_text().replace("interval: 1 day", "interval: 1 microsecond"))
    drained(fleet, "daily", (day(1), day(2)), watermark=day(9))
    fleet.record("daily")
    found = as_reader_of("daily").get("/calendar/daily?format=json")
    assert found.status_code == 200
    assert "shorter than" in found.text


@contextmanager
def _statements() -> Iterator[list[str]]:
    """The statements that reach any database inside the block."""
    said: list[str] = []

    def note(*arguments: Any) -> None:
        said.append(arguments[2])

    event.listen(Engine, "before_cursor_execute", note)
    try:
        yield said
    finally:
        event.remove(Engine, "before_cursor_execute", note)


def _address(chance: random.Random, route: APIRoute) -> str:
    flat = get_flat_dependant(route.dependant)
    path = route.path
    for field in flat.path_params:
        value = _value(chance, field.name, field.field_info.annotation) or b"x"
        for name in (f"{{{field.name}}}", f"{{{field.name}:path}}"):
            path = path.replace(name, quote_from_bytes(value, safe=""))
    query = [
        (field.alias, _value(chance, field.name, field.field_info.annotation))
        for field in _some(chance, flat.query_params)
    ]
    query += [(name, _value(chance, name, str)) for name in EVERYWHERE if chance.random() < 0.5]
    if chance.random() < 0.1:
        query.append((chance.choice(odd_values.TEXTS)[:50], b"1"))
    text = "&".join(f"{quote_from_bytes(k.encode(), safe='')}={_written(chance, v)}" for k, v in query)
    return f"{path}?{text}" if text else path


def _written(chance: random.Random, value: bytes) -> str:
    """Quoted as it should be, or, rarely, a broken escape behind it."""
    return quote_from_bytes(value, safe="") + ("" if chance.random() < 0.9 else chance.choice("%+"))


def _some(chance: random.Random, fields: Sequence[Any]) -> Iterator[Any]:
    """Each parameter once, not at all, or several times."""
    for field in fields:
        yield from [field] * chance.choice((0, 1, 1, 1, 3))


def _value(chance: random.Random, name: str, kind: Any) -> bytes:
    """Most are as they should be, so that the odd ones come behind the first check."""
    known = KNOWN.get(name, ())
    if known and chance.random() < 0.7:
        return chance.choice(known).encode()
    if "datetime" in str(kind) and chance.random() < 0.7:
        return odd_values.any_time(chance).encode()
    return odd_values.any_value(chance, _likely(name, kind))


def _likely(name: str, kind: Any) -> Sequence[str]:
    if "datetime" in str(kind):
        return odd_values.TIMES
    if "int" in str(kind) or "float" in str(kind):
        return (*KNOWN.get(name, ()), *odd_values.NUMBERS)
    return KNOWN.get(name, ()) * 4


def _headers(chance: random.Random) -> dict[str, bytes]:
    return {
        "accept": chance.choice((b"text/html", b"application/json", b"", b"*/*", b"application/json;q=\xff")),
        "authorization": chance.choice((b"", b"Bearer x", b"Bearer \xff\xfe", b"Basic", b"bearer", b" ")),
    }


@pytest.mark.parametrize("length", [timedelta(minutes=5), timedelta(days=1), timedelta(days=36_500)])
def test_a_replay_can_be_triggered_for_any_date(airflow_home: None, length: timedelta) -> None:
    """Airflow's api-server asks the timetable, whatever date somebody gives."""
    from drawdown.airflow.replay_timetable import ReplayTimetable

    timetable = ReplayTimetable(length)
    for at in (datetime.min, datetime(1, 12, 31), datetime(2026, 1, 31, 12), datetime.max):
        found = timetable.infer_manual_data_interval(instance(at.replace(tzinfo=UTC)))
        assert found.end - found.start == length
        assert at.year != 2026 or found.start <= instance(at.replace(tzinfo=UTC)) < found.end
