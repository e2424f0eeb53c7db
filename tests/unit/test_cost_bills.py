"""Costs from records: what pipelines are charged with adds up to what applications asked for and used."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from drawdown.cost.bill import Bill
from drawdown.cost.charges import NO_RUN, charges
from drawdown.cost.report import by_day, by_pipeline, total
from drawdown.metastore.application_shares import usages
from drawdown.metastore.records import ApplicationRecord, RunUsage
from drawdown.spec.clusters.price import GB

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
PRICE = {"currency": "EUR", "core_hour": "0.04", "gb_hour": "0.005"}


def seconds(count: float) -> timedelta:
    return timedelta(seconds=count)


def application(name: str, start: datetime, length: float, **values: Any) -> ApplicationRecord:
    end = start + seconds(length)
    known: dict[str, Any] = {
        "ended_at": end,
        "start_us": 1,
        "idle_us": 0,
        "cpu_us": 1_000_000,
        "peak_bytes": GB,
    }
    known |= {"cores": 2, "memory": GB, "price": PRICE} | values
    return ApplicationRecord(name, "local", started_at=start, seen_at=end, **known)


def ran(of: ApplicationRecord, *spans: tuple[str, float, float], rows: int = 100) -> list[RunUsage]:
    """Runs of an application, each of a pipeline, from and to so many seconds after its start."""
    times = {
        f"{of.application_id}.{p}": (of.started_at + seconds(a), of.started_at + seconds(b))
        for p, a, b in spans
    }
    told = usages(of, of.ended_at or of.seen_at, times, of.cpu_us) if of.ended_at else {}
    return [
        RunUsage(
            run, run.partition(".")[2], "drain", "succeeded", *when, rows, of.application_id, told.get(run)
        )
        for run, when in times.items()
    ]


def test_a_run_alone_is_charged_with_its_whole_application() -> None:
    hour = application("a", NOON, 3_600)
    [charge] = charges([hour], ran(hour, ("flights", 600, 3_000)))
    bill = charge.bill
    assert (bill.core_hours, bill.gb_hours, bill.peak_gb_hours) == (2, 1, 1)
    assert bill.money == {"EUR": Fraction("0.085")}
    assert (bill.rows, bill.runs, bill.cpu_us) == (100, 1, 1_000_000)
    assert bill.idle_us == 1_200 * 2 * 1_000_000


def test_startup_is_billed_for_each_application_and_shared_by_its_runs() -> None:
    billed = {**PRICE, "startup_us": "1800000000", "minimum_us": "60000000"}
    hour = application("a", NOON, 3_600, price=billed)
    found = list(charges([hour], ran(hour, ("flights", 0, 900), ("weather", 900, 3_600))))
    assert [each.bill.money["EUR"] for each in found] == [
        Fraction("0.085") * Fraction(3, 2) * part for part in (Fraction(1, 4), Fraction(3, 4))
    ]
    assert total(each.bill for each in found).core_hours == 2


def test_a_short_application_is_billed_for_the_minimum() -> None:
    short = application("a", NOON, 9, price={**PRICE, "minimum_us": "60000000"})
    [charge] = charges([short], ran(short, ("flights", 0, 9)))
    assert charge.bill.money == {"EUR": Fraction("0.085") / 60}
    [alone] = charges([short], [])
    assert alone.bill.money == {"EUR": Fraction("0.085") / 60}


def test_without_a_price_there_are_hours_and_no_money() -> None:
    hour = application("a", NOON, 3_600, price=None)
    [charge] = charges([hour], ran(hour, ("flights", 0, 3_600)))
    assert (charge.bill.core_hours, charge.bill.money, charge.bill.unpriced) == (2, {}, 1)


def test_two_currencies_are_two_sums() -> None:
    euros = application("a", NOON, 3_600)
    dollars = application("b", NOON, 3_600, price={**PRICE, "currency": "USD"})
    runs = [*ran(euros, ("flights", 0, 1)), *ran(dollars, ("flights", 0, 1))]
    assert total(each.bill for each in charges([euros, dollars], runs)).money == {
        "EUR": Fraction("0.085"),
        "USD": Fraction("0.085"),
    }


def test_a_run_of_before_costs_were_noted_is_unknown_and_not_nought() -> None:
    old = RunUsage("r1", "flights", "drain", "succeeded", NOON, NOON + seconds(9), 100, None, None)
    release = replace(old, run_id="r2", kind="release")
    [charge] = charges([], [old, release])
    assert charge.bill == Bill(unknown=1)
    [cost] = by_pipeline([charge], NOON, NOON + timedelta(days=1), {}, {})
    assert (cost.bill.runs, cost.always_on) == (0, None)


def test_a_killed_application_is_charged_up_to_the_last_that_was_heard_of_it() -> None:
    killed = application("a", NOON, 60, ended_at=None, start_us=None, cpu_us=None, peak_bytes=None)
    runs = ran(killed, ("flights", 10, 20), ("weather", 20, 9_999))
    by_name = {each.pipeline: each for each in charges([killed], runs)}
    assert by_name["flights"].bill.core_us == (5 + 10) * 2 * 1_000_000
    assert by_name["weather"].bill.core_us == (5 + 40) * 2 * 1_000_000
    assert [(each.whole, each.work, each.bill.unmeasured) for each in by_name.values()] == [
        (False, False, 1)
    ] * 2


def test_an_application_that_came_to_no_run_is_charged_to_none() -> None:
    busy = application("a", NOON, 10)
    [charge] = charges([busy], [])
    assert (charge.pipeline, charge.bill.runs, charge.bill.core_us) == (NO_RUN, 0, 20_000_000)
    [cost] = by_pipeline([charge], NOON - timedelta(days=30), NOON, {}, {})
    assert (cost.days, cost.always_on) == (0, None)


def test_a_day_has_what_began_on_it() -> None:
    late = application("a", datetime(2026, 3, 1, 23, 59, tzinfo=UTC), 3_600)
    found = by_day(charges([late], ran(late, ("flights", 0, 3_600))))
    assert list(found) == [late.started_at.date()]


def test_an_always_on_stream_is_as_large_and_as_old_as_the_pipeline() -> None:
    hour = application("a", NOON, 3_600)
    now = NOON + timedelta(days=2)
    runs = ran(hour, ("flights", 0, 3_600))
    [cost] = by_pipeline(charges([hour], runs), NOON - timedelta(days=30), now, {"flights": NOON}, {})
    assert (cost.days, cost.always_on and cost.always_on.core_hours) == (2, 96)


def test_pipelines_of_a_group_share_one_always_on_application() -> None:
    hour = application("a", NOON, 3_600)
    runs = ran(hour, ("flights", 0, 1_800), ("weather", 1_800, 3_600))
    costs = by_pipeline(
        charges([hour], runs), NOON, NOON + timedelta(days=1), {}, {"flights": "air", "weather": "air"}
    )
    assert [each.always_on and each.always_on.core_hours for each in costs] == [24, 24]


MOMENTS = st.floats(0, 200, allow_nan=False)
RUNS = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c", "d"]), MOMENTS, MOMENTS), max_size=4, unique_by=lambda s: s[0]
)


@given(
    st.lists(
        st.tuples(
            st.floats(0, 100),
            st.integers(1, 64),
            st.integers(1, 2**40),
            st.integers(0, 10**12),
            st.booleans(),
            RUNS,
        ),
        max_size=5,
    )
)
def test_pipelines_add_up_to_applications(made: list[tuple[float, int, int, int, bool, Any]]) -> None:
    applications, runs = [], []
    for number, (length, cores, memory, cpu, killed, spans) in enumerate(made):
        values: dict[str, Any] = {"cores": cores, "memory": memory, "cpu_us": cpu}
        if killed:
            values |= {"ended_at": None, "cpu_us": None, "peak_bytes": None}
        each = application(f"app{number}", NOON, length, **values)
        applications.append(each)
        runs += ran(each, *spans)
    costs = by_pipeline(charges(applications, runs), NOON, NOON + timedelta(days=1), {}, {})
    summed = total(cost.bill for cost in costs)
    asked = {
        each.application_id: round((each.seen_at - each.started_at) / timedelta(microseconds=1))
        for each in applications
    }
    assert summed.core_us == sum(asked[each.application_id] * each.cores for each in applications)
    assert summed.byte_us == sum(asked[each.application_id] * each.memory for each in applications)
    assert summed.cpu_us == sum(each.cpu_us or 0 for each in applications)
    assert total(by_day(charges(applications, runs)).values()) == summed
