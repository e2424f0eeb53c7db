"""What other profiles and schedules would have cost: figures from a history, reckoned here by hand."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

import pytest

from drawdown.cost.run_time import RunTime
from drawdown.cost.what_if import SCHEDULES, Asked, Option, WhatIf, what_if
from drawdown.metastore import Metastore
from drawdown.metastore.operations.applications import Measured, Requested
from drawdown.metastore.records import Counts, MeasuredRun, Run
from drawdown.spec import Cluster, LocalCluster, StandaloneCluster
from drawdown.spec.clusters.price import GB
from tests.support.ageing import records_grow_old
from tests.support.command_line import answer, drawdown
from tests.support.sandbox import Sandbox

HOUR = timedelta(hours=1)
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)

PROFILES = """
clusters:
  local:
    master: local[2]
    price: {currency: EUR, core_hour: 0.04, gb_hour: 0.005}
  pair:
    kind: standalone
    workers: 2
    worker_memory: 1g
    price: {currency: EUR, core_hour: 0.02, startup: 2 minutes, minimum: 5 minutes}
  never: {master: "local[8]"}
"""
LOCAL = LocalCluster.model_validate(
    {"master": "local[2]", "price": {"currency": "EUR", "core_hour": "0.04", "gb_hour": "0.005"}}
)
PAIR = StandaloneCluster.model_validate(
    {
        "kind": "standalone",
        "workers": 2,
        "price": {"currency": "EUR", "core_hour": 0.02, "startup": "2 minutes", "minimum": "5 minutes"},
    }
)
CLUSTERS: dict[str, Cluster] = {"local": LOCAL, "pair": PAIR, "never": LocalCluster(master="local[8]")}


def rows_of(number: int) -> int:
    """Of the run in this hour: 36,000 on average, and every other one twice the one before."""
    return 48_000 if number % 2 else 24_000


def ran(number: int, rows: int, seconds: float, **values: Any) -> MeasuredRun:
    usage = {"us": round(seconds * 1e6), "cores": 2, "memory": GB, "start_us": 10_000_000, "price": None}
    run = MeasuredRun(f"r{number}", "drain", "succeeded", NOON + number * HOUR, rows, usage, "local")
    return replace(run, usage=usage | values.pop("usage", {}), **values)


def on_local(number: int, **values: Any) -> MeasuredRun:
    """30 s, and 1 s for 1,000 rows."""
    return ran(number, rows_of(number), 30 + rows_of(number) / 1_000, **values)


def on_pair(number: int) -> MeasuredRun:
    """60 s, and 1 s for 2,000 rows."""
    of_cluster = {"cores": 3, "memory": 3 * GB}
    return ran(number, rows_of(number), 60 + rows_of(number) / 2_000, cluster="pair", usage=of_cluster)


HISTORY = [*map(on_local, range(25)), *map(on_pair, range(25, 37))]

TAKES = {
    # schedule: seconds of a run, EUR a day
    "local": {
        "5 minutes": (33, 288 * 33 * 0.085 / 3_600),
        "15 minutes": (39, 0.0884),
        "30 minutes": (48, 0.0544),
        "1 hour": (66, 0.0374),
        "6 hours": (246, 4 * 246 * 0.085 / 3_600),
        "1 day": (894, 894 * 0.085 / 3_600),
        "always on": (None, 2.04),
    },
    # Each run is billed for 2 minutes more, and for 5 minutes at least.
    "pair": {
        "5 minutes": (61.5, 1.44),
        "15 minutes": (64.5, 0.48),
        "30 minutes": (69, 0.24),
        "1 hour": (78, 0.12),
        "6 hours": (168, 0.02),
        "1 day": (492, 612 * 0.06 / 3_600),
        "always on": (None, 1.44),
    },
}


def ask(history: list[MeasuredRun], freshness: timedelta | None = HOUR, **more: Any) -> WhatIf:
    return what_if(Asked("sales", more.pop("clusters", CLUSTERS), freshness, **more), history)


def by_schedule(found: WhatIf, cluster: str) -> dict[str, Option]:
    return {each.schedule: each for each in found.options if each.size.cluster == cluster}


@pytest.mark.parametrize("cluster", TAKES)
def test_fewer_runs_with_more_rows_pay_the_fixed_part_less_often(cluster: str) -> None:
    options = by_schedule(ask(HISTORY), cluster)
    assert list(options) == list(SCHEDULES) == list(TAKES[cluster])
    for schedule, (seconds, euros) in TAKES[cluster].items():
        option = options[schedule]
        assert option.takes == (seconds and pytest.approx(seconds))
        assert option.bill is not None
        assert float(option.bill.money["EUR"]) == pytest.approx(euros, rel=1e-6), schedule


def test_arrivals_are_what_came_after_the_first_run_began() -> None:
    assert ask(HISTORY).arrivals == pytest.approx(36_000)
    backlog_of_years = replace(HISTORY[0], rows=10**9)
    assert ask([backlog_of_years, *HISTORY[1:]]).arrivals == pytest.approx(36_000)


@pytest.mark.parametrize(
    ("freshness", "cheapest"),
    [
        (timedelta(minutes=5), ("pair", "always on")),
        (timedelta(minutes=20), ("local", "15 minutes")),
        (timedelta(hours=1), ("local", "30 minutes")),
        (timedelta(seconds=3_665), ("local", "30 minutes")),
        (timedelta(seconds=3_666), ("local", "1 hour")),
        (timedelta(hours=7), ("pair", "6 hours")),
        (timedelta(hours=25), ("pair", "1 day")),
    ],
)
def test_the_cheapest_that_is_fresh_enough(freshness: timedelta, cheapest: tuple[str, str]) -> None:
    best = ask(HISTORY, freshness).cheapest
    assert isinstance(best, Option)
    assert (best.size.cluster, best.schedule) == cheapest
    assert best.fresh


def test_without_freshness_none_is_named() -> None:
    found = ask(HISTORY, None)
    assert isinstance(found.cheapest, str)
    assert "freshness" in found.cheapest
    assert {each.fresh for each in found.options} == {None}


def test_runs_that_met_a_busy_machine_do_not_bend_the_line() -> None:
    slow = [on_local(n, usage={"us": 900_000_000}) if n in (3, 8, 13) else on_local(n) for n in range(25)]
    times = ask(slow).times["local"]
    assert isinstance(times, RunTime)
    assert (times.fixed, times.per_row[2]) == (pytest.approx(30), pytest.approx(0.001))


def test_a_schedule_that_is_beyond_the_record_says_so() -> None:
    beyond = {name: each.beyond for name, each in by_schedule(ask(HISTORY), "local").items()}
    assert [name for name in beyond if beyond[name]] == ["6 hours", "1 day"]


def test_runs_that_take_longer_than_their_schedule_do_not_keep_up() -> None:
    # A row a millisecond: what arrives in an hour takes more than an hour.
    busy = [ran(n, 100 * rows_of(n), 30 + 100 * rows_of(n) / 1_000) for n in range(25)]
    options = by_schedule(ask(busy), "local")
    assert [each.bill for each in options.values()] == [None] * 7
    assert not any(each.fresh for each in options.values())
    assert ask(busy).cheapest == "no figure is known"


@pytest.mark.parametrize(
    ("history", "why"),
    [
        (HISTORY[:9], "9 of 10 runs with data needed"),
        ([ran(n, 1_000 + n, 31) for n in range(30)], "about the same number of rows"),
        ([ran(n, 0, 31) for n in range(30)], "0 of 10 runs with data needed"),
        ([ran(n, rows_of(n), rows_of(n)) for n in range(30)], "proportional to rows"),
        ([on_local(n, state="failed") for n in range(30)], "0 of 10 runs with data needed"),
        ([on_local(n, usage={"start_us": None}) for n in range(30)], "0 of 10 runs with data needed"),
        ([replace(on_local(n), usage=None) for n in range(30)], "0 of 10 runs with data needed"),
    ],
)
def test_what_the_record_does_not_show_is_unknown(history: list[MeasuredRun], why: str) -> None:
    found = ask(history)
    assert why in found.unknown["local"]
    assert not by_schedule(found, "local")
    assert found.unknown["never"] == "no run used it"


def test_arrivals_of_a_young_pipeline_are_unknown() -> None:
    young = [replace(on_local(n), started_at=NOON + n * HOUR / 2) for n in range(25)]
    assert ask(young).arrivals == "needs runs of at least one day"
    assert "10 runs needed" in str(ask(HISTORY[:9]).arrivals)
    assert not ask(HISTORY[:9]).options
    watched = [*HISTORY, replace(on_local(40), kind="watch")]
    assert "drawdown watch" in str(ask(watched).arrivals)


def test_a_profile_with_other_cores_than_its_runs_had_is_unknown_until_two_sizes_ran() -> None:
    four: dict[str, Cluster] = {"local": LocalCluster(master="local[4]")}
    one_size = ask([on_local(n) for n in range(25)], clusters=four)
    assert one_size.unknown["local"].startswith("it has 4 cores now, its runs had 2")
    assert not one_size.options

    # With 1 core a row took 1.6 ms, with 2 cores 1 ms: 0.4 ms that cores do not share, 1.2 ms that they do.
    single = [ran(n, rows_of(n), 30 + 1.6 * rows_of(n) / 1_000, usage={"cores": 1}) for n in range(25, 39)]
    found = by_schedule(ask([*map(on_local, range(25)), *single], clusters=four), "local")
    # With 4 cores 0.4 + 0.3 = 0.7 ms, and the same 30 s.
    assert found["1 hour"].takes == pytest.approx(30 + 36 * 0.7)
    assert found["1 hour"].bill is not None
    assert found["1 hour"].bill.core_us == pytest.approx(24 * 4 * (30 + 36 * 0.7) * 1e6)


def test_a_profile_sized_by_its_backlog_has_a_line_for_each_size_that_ran() -> None:
    sized = StandaloneCluster.model_validate(
        {"kind": "standalone", "workers": {"max": 4, "within": "1 hour"}}
    )
    runs = [ran(n, rows_of(n), 40, usage={"cores": 1 + (2 if n > 20 else 1)}) for n in range(30)]
    found = ask([replace(each, cluster="sized") for each in runs], clusters={"sized": sized})
    assert sorted({each.size.cores for each in found.options}) == [2, 3]
    assert {each.size.memory for each in found.options} == {2 * GB, 3 * GB}


def test_prices_in_several_currencies_are_not_compared() -> None:
    assert PAIR.price is not None
    dollars = PAIR.model_copy(update={"price": PAIR.price.model_copy(update={"currency": "USD"})})
    assert "several currencies" in str(ask(HISTORY, clusters={**CLUSTERS, "pair": dollars}).cheapest)
    free = PAIR.model_copy(update={"price": None})
    assert "some have none" in str(ask(HISTORY, clusters={**CLUSTERS, "pair": free}).cheapest)


def test_without_any_price_core_hours_are_compared() -> None:
    free = {"local": LocalCluster(master="local[2]")}
    best = ask(HISTORY, clusters=free).cheapest
    assert isinstance(best, Option)
    assert (best.schedule, best.bill and best.bill.money) == ("30 minutes", {})
    assert best.bill is not None
    assert float(best.bill.core_hours) == pytest.approx(48 * 48 * 2 / 3_600)


def test_a_pipeline_of_a_group_pays_its_part_of_a_stream() -> None:
    half = by_schedule(ask(HISTORY, part=Fraction(1, 2)), "local")["always on"]
    assert half.bill is not None
    assert float(half.bill.money["EUR"]) == pytest.approx(1.02)


# Through the metastore and the command


def record(metastore: Metastore) -> None:
    """HISTORY by the metastore's own operations, an hour after each other."""
    for number, run in enumerate(HISTORY):
        assert run.usage is not None
        application, pair = f"app{number}", run.cluster == "pair"
        age = timedelta(microseconds=run.usage["us"])
        asked = Requested(run.cluster or "", 1 if pair else 2, GB, None)
        metastore.applications.begin(application, asked, age)
        metastore.start_run(Run(run.run_id, "sales", application=application))
        metastore.finish_run(run.run_id, "succeeded", counts=Counts(read=run.rows, fed=run.rows))
        of_executors = {"executor_cores": 2, "executor_memory": 2 * GB} if pair else {}
        metastore.applications.end(application, Measured(start_us=10_000_000, **of_executors))
        records_grow_old(metastore, HOUR)


SPEC = """
sources: {events: {format: json, path: landing/events, schema: "id INT"}}
transform: transform.sql
sink: {format: delta, path: tables/sales, schema: out.ddl}
freshness: 1 hour
"""


@pytest.fixture(scope="module")
def sales(tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    sandbox = Sandbox(tmp_path_factory.mktemp("what_if") / "project", more=PROFILES)
    files = {"transform_sql": "SELECT id FROM events", "out_ddl": "id INT"}
    sandbox.pipeline("sales", SPEC, **files)
    sandbox.pipeline("fresh", SPEC.replace("tables/sales", "tables/fresh"), **files)
    with sandbox.metastore() as metastore:
        record(metastore)
    return sandbox


def test_the_command_reckons_with_what_the_metastore_has_recorded(sales: Sandbox) -> None:
    ended = drawdown(sales.root, "cost", "sales", "--what-if", "--json")
    assert ended.returncode == 0, ended.stderr
    [found] = answer(ended.stdout)["pipelines"]
    # The metastore's own clock runs on while the records are written.
    assert found["rows_per_hour"] == pytest.approx(36_000, rel=1e-2)
    assert found["freshness_seconds"] == 3_600
    for option in found["options"]:
        seconds, euros = TAKES[option["cluster"]][option["schedule"]]
        assert option["seconds_per_run"] == (seconds and pytest.approx(seconds, rel=0.01, abs=1))
        assert option["money_per_day"]["EUR"] == pytest.approx(euros, rel=0.03)
    assert (found["cheapest"]["cluster"], found["cheapest"]["schedule"]) == ("local", "30 minutes")
    assert found["not_told"] == {"profile never": "no run used it"}
    assert found["profiles"]["never"]["seconds_per_run"] is None
    assert found["seconds_until_spark"] == 10


def test_the_table_fits_80_columns_and_ends_with_the_answer(sales: Sandbox) -> None:
    said = drawdown(sales.root, "cost", "sales", "fresh", "--what-if").stdout
    table = [line for line in said.splitlines() if line.startswith(("local", "pair"))]
    assert len(table) == 14
    assert max(map(len, table)) <= 80
    [cheapest] = [line for line in table if line.endswith("cheapest")]
    assert cheapest.split()[:4] == ["local", "2", "30", "minutes"]
    assert "local with 2 cores, every 30 minutes, is the cheapest within `freshness: 1 hour`" in said
    assert "sales on never: unknown (no run used it)" in said
    assert "fresh: rows that arrive in an hour: unknown (0 of 10 runs needed)" in said
    assert "rows a run" not in said
    assert "rows a run" in drawdown(sales.root, "cost", "sales", "--what-if", "--wide").stdout


def test_days_are_no_question_of_schedules(sales: Sandbox) -> None:
    refused = drawdown(sales.root, "cost", "--what-if", "--by", "day")
    assert refused.returncode == 2
    assert "leave out --by" in " ".join(refused.stderr.replace("│", "").split())
