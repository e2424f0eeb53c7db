"""The graph of pipelines and tables: edges by paths, topics and schedules, states, links, rights, layout."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from drawdown.observe.graph import view
from drawdown.observe.graph.layout import Layout, layout
from tests.fixtures.pages import Ask as AsReader
from tests.support.fleet_records import FleetRecords

pytestmark = pytest.mark.capability("SEE-06")
Ask = Callable[..., Any]
"""Asks for a page as somebody who may read these DAGs."""


@pytest.fixture
def ask(as_reader_of: AsReader) -> Ask:
    return lambda path, *dags: as_reader_of(*dags).get(path)


def reading(fleet: FleetRecords, name: str, path: str, more: str = "") -> None:
    fleet.pipeline(name, more)
    spec = fleet.root / "include/pipelines" / name / "pipeline.yaml"
    spec.write_text(spec.read_text().replace("path: landing", f"path: {path}"))


@pytest.fixture
def records(fleet: FleetRecords) -> FleetRecords:
    """raw feeds clean, clean feeds two others; a last one only waits for clean."""
    reading(fleet, "raw", "landing/raw")
    for name, path in (("clean", "tables/raw"), ("daily", "tables/clean"), ("hourly", "tables/clean")):
        reading(fleet, name, path, "tags: [shop]\n")
    reading(fleet, "mail", "landing/addresses", "schedule: ['asset:clean']\n")
    fleet.ran("daily", "failed", error={"id": "x.y", "what": "no rows"})
    fleet.record("raw", "clean", "daily", "hourly", "mail")
    return fleet


ALL = ("raw", "clean", "daily", "hourly", "mail")


def edges(page: Any) -> set[tuple[str, str]]:
    found = page.json()["graph"]
    names = {node["key"]: node["name"] for node in found["nodes"]}
    return {(names[a], names[b]) for a, b in found["edges"]}


def test_edges_lead_from_what_feeds_to_what_is_fed(ask: Ask, records: FleetRecords) -> None:
    page = ask("/graph?format=json", *ALL)
    assert edges(page) == {
        ("landing/raw (text)", "raw"), ("raw", "clean"), ("clean", "daily"), ("clean", "hourly"),
        ("clean", "mail"), ("landing/addresses (text)", "mail"),
    }  # fmt: skip
    written = {node["name"]: node["writes"] for node in page.json()["graph"]["nodes"] if node["state"]}
    assert written == {name: f"tables/{name} (delta)" for name in ALL}


def test_a_table_with_two_writers_has_a_box_of_its_own(ask: Ask, fleet: FleetRecords) -> None:
    for name in ("one", "two", "reader"):
        reading(fleet, name, "tables/shared" if name == "reader" else f"landing/{name}")
        spec = fleet.root / "include/pipelines" / name / "pipeline.yaml"
        if name != "reader":
            spec.write_text(spec.read_text().replace(f"tables/{name}", "tables/shared"))
    fleet.record("one", "two", "reader")
    found = edges(ask("/graph?format=json", "one", "two", "reader"))
    shared = {("one", "tables/shared (delta)"), ("two", "tables/shared (delta)")}
    assert found >= {*shared, ("tables/shared (delta)", "reader")}


def test_a_pipeline_is_a_link_to_its_page_in_the_colour_of_its_state(ask: Ask, records: FleetRecords) -> None:
    page = ask("/graph", *ALL).text
    said = "daily: failed, x.y: no rows; writes tables/daily (delta)"
    assert f'href="/drawdown/dags/daily?pipeline=daily" aria-label="{said}"' in page
    assert 'class="node state-failed"' in page


def test_what_the_reader_may_not_see_is_nowhere(ask: Ask, records: FleetRecords) -> None:
    page = ask("/graph?format=json", "raw", "hourly", "mail")
    assert "clean" not in {each["pipeline"]["name"] for each in page.json()["rows"]}
    assert ("clean", "mail") not in edges(page)
    assert '"pipeline:clean"' not in page.text


def test_filters_and_what_is_around_one_pipeline(ask: Ask, records: FleetRecords) -> None:
    def shown(query: str) -> set[str]:
        return {each["pipeline"]["name"] for each in ask(f"/graph?format=json&{query}", *ALL).json()["rows"]}

    assert shown("tag=shop") == {"clean", "daily", "hourly"}
    assert shown("text=ou") == {"hourly"}
    assert shown("around=daily") == {"raw", "clean", "daily"}
    assert shown("around=clean") == set(ALL)
    assert "No pipeline matches" in ask("/graph?text=nothing", *ALL).text


def test_of_too_many_pipelines_the_worst_are_shown(
    ask: Ask, records: FleetRecords, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view, "MOST", 1)
    page = ask("/graph?format=json", *ALL).json()
    assert [each["pipeline"]["name"] for each in page["rows"]] == ["daily"]
    assert page["found"] == 5


def test_hostile_paths_and_errors_are_text(ask: Ask, fleet: FleetRecords) -> None:
    reading(fleet, "orders", "landing")
    spec = fleet.root / "include/pipelines/orders/pipeline.yaml"
    spec.write_text(spec.read_text().replace("path: landing", "path: 'landing/<script>alert(1)</script>'"))
    fleet.ran("orders", "failed", error={"id": "x.y", "what": '"><img src=x onerror=alert(2)>'})
    fleet.record("orders")
    page = ask("/graph", "orders").text
    assert "landing/&lt;script&gt;" in page
    assert "<script>alert" not in page
    assert "<img" not in page


def test_nothing_recorded_is_said(ask: Ask, fleet: FleetRecords) -> None:
    assert "Nothing is recorded yet" in ask("/graph").text


def test_a_spec_that_cannot_be_read_keeps_its_edges(ask: Ask, records: FleetRecords) -> None:
    (records.root / "include/pipelines/clean/pipeline.yaml").write_text("sources: 1")
    records.record("clean")
    assert ("raw", "clean") in edges(ask("/graph?format=json", *ALL))


def crossings(found: Layout) -> int:
    lines = [tuple(pair) for route in found.routes for pair in pairwise(route)]
    return sum(
        a[0] == c[0] and (a[1] - c[1]) * (b[1] - d[1]) < 0
        for number, (a, b) in enumerate(lines)
        for c, d in lines[:number]
    )


def test_each_edge_leads_to_the_right_through_a_place_of_its_own_in_each_layer() -> None:
    edges = [("a", "b"), ("b", "c"), ("a", "c"), ("c", "d"), ("a", "d"), ("x", "d")]
    found = layout(["a", "b", "c", "d", "x"], edges)
    for route in found.routes:
        assert [place[0] for place in route] == list(range(route[0][0], route[-1][0] + 1))
    assert len(set(found.places.values())) == 5
    through = [place for route in found.routes for place in route[1:-1]]
    assert not set(through) & set(found.places.values())
    assert found.places["x"][0] == found.places["d"][0] - 1, "next to what it feeds"


def test_a_shuffled_forest_is_drawn_without_crossings() -> None:
    edges = [(f"{tree}", f"{tree}.{leaf}") for tree in range(6) for leaf in range(4)]
    nodes = [name for tree in range(6) for name in (f"{tree}", *(f"{tree}.{leaf}" for leaf in range(4)))]
    random.Random(7).shuffle(nodes)
    assert crossings(layout(nodes, edges)) == 0


def test_a_cycle_is_drawn_with_one_edge_back() -> None:
    found = layout(["a", "b", "c"], [("a", "b"), ("b", "c"), ("c", "a"), ("a", "a")])
    back = [route for route in found.routes if route[0][0] > route[-1][0]]
    assert len(found.routes) == 3
    assert len(back) == 1
