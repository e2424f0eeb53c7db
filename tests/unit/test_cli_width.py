"""Every listing reads at 80 columns: no line is longer, and nothing that matters is cut off."""

from __future__ import annotations

import io
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from typing import Any

import pytest
from rich.console import Console, RenderableType

from drawdown.application.plan import Plan
from drawdown.cli.shown.checkpoint import overview_tables
from drawdown.cli.shown.cost import day_table, pipeline_table
from drawdown.cli.shown.listing import count, duration, records
from drawdown.cli.shown.plan import plan_parts
from drawdown.cli.shown.quarantine import counts_table
from drawdown.cli.shown.runs import progress_table, run_table
from drawdown.cli.shown.what_if import what_if_table
from drawdown.cost.bill import Bill
from drawdown.cost.crossing import Crossing
from drawdown.cost.report import PipelineCost
from drawdown.cost.what_if import Option, ProfileSize, WhatIf
from drawdown.metastore.records import UNCOUNTED, Counts, Run
from drawdown.plan.drain_fit import DrainFit
from drawdown.plan.preflight import Preflight
from drawdown.plan_verdicts import PlanVerdict
from drawdown.query.state.operators import Operator

NAME = "customer_orders_enriched_with_returns_hourly"
AT = datetime(2024, 3, 31, 23, 59, 59, tzinfo=UTC)
PATH = "s3://company-data-platform-production/streaming/_drawdown/" + NAME + "/checkpoint-12"
RUN = Run(
    "2024-03-31T23-59-59-a1b2c3d4e5f6",
    NAME,
    kind="quarantine-replay",
    state="failed",
    started_at=AT,
    ended_at=AT + timedelta(hours=31, seconds=7),
    counts=Counts(
        read=12_345_678, malformed=1_234_567, quarantined=99, late=7, published=987_654, lost=123_456
    ),
    watermark=AT,
    verdict="error",
)
METRICS = {"rocksdbBytesCopied": 1}


def at_80(*parts: RenderableType, width: int = 80) -> str:
    screen = Console(file=io.StringIO(), width=width, force_terminal=False)
    for part in parts:
        screen.print(part)
    assert isinstance(screen.file, io.StringIO)
    return screen.file.getvalue()


def joined(text: str) -> str:
    """Without the breaks of folded cells."""
    return "".join(text.split())


def progressed(run: Run, rows: int | None) -> Run:
    entry: dict[str, Any] = {
        "batch_id": 123_456,
        "rows": 12_345_678,
        "duration_ms": {"triggerExecution": 1_234_567, "addBatch": 1_234_500},
        "watermark": "2024-03-31T23:59:59.000Z",
        "operators": [{"rows": rows, "memory_bytes": 12_345_678_901, "metrics": METRICS}],
    }
    return replace(run, progress=[entry])


COST = PipelineCost(
    NAME,
    Bill(
        runs=1234, rows=123_456_789, core_us=10**13, cpu_us=10**12, byte_us=10**22,
        money={"EUR": Fraction(12345)},
    ),
    Fraction(30),
    Bill(runs=1, core_us=10**14, money={"EUR": Fraction(99_999)}),
    Crossing(10.0, 0.1, 600.0),
)  # fmt: skip
OVERVIEW = {
    "pipeline": NAME,
    "generation": 12,
    "generations": [11, 12],
    "path": PATH,
    "query_id": "0b4a3f2e-6d1c-4f6e-9a55-0123456789ab",
    "planned": {"last": 1234, "kept": [1000, 1234]},
    "committed": {"last": 1234, "kept": [1000, 1234]},
    "sources": {"orders": {"orders-topic-in-production": {str(n): 10**9 + n for n in range(12)}}},
    "watermark": AT,
    "folders": {"state": {"files": 12_345, "bytes": 12_345_678_901}},
    "stores": [
        {
            "operator": 0, "partition": 199, "store": "right-keyWithIndexToValue",
            "whole": list(range(20)), "changes": 10, "newest_version": 12_345, "bytes": 10**10,
        }
    ],
    "snapshots": [],
    "metastore": {"query_id": "0b4a3f2e-6d1c-4f6e-9a55-0123456789ab", "batches": {"published": 1234}},
    "sink": {"output": 1234},
    "lease": "worker-7.data-platform.internal pid 12345, run " + RUN.run_id,
}  # fmt: skip
PLAN = Plan(
    NAME,
    None,
    (
        PlanVerdict(
            "refused", "sink.schema-drift", "sink.schema",
            f"the transform of {NAME} gives order_total DECIMAL(12, 2), the table has DOUBLE",
            f"drawdown rebuild start {NAME}",
        ),
    ),
    (),
    (Operator("streaming aggregation by window", "window STRUCT<start, end>, customer_id, n", "GROUP BY"),),
    Preflight(True, ["12 new files"], {"orders": {"files": 12_345, "bytes": 12_345_678_901}}),
    None,
    None,
    DrainFit("no", 400, 12_345.0, "it needs 400 batches and max is 100"),
)  # fmt: skip
SPENT = {"rule": "order_total_is_not_negative", "source": "orders_from_the_web_shop", "generation": 12}
QUARANTINE = [
    {**SPENT, "batch_id": 12_345, "day": date(2024, 3, 31), "open": 12_345_678, "fed": 1, "replaying": 1}
    | {"replayed": 12_345_678, "dropped": 123_456}
]
STATE = [
    {"key": {"customer_id": "c" * 30, "window": {"start": "2024-03-31T23:00:00", "end": "2024-04-01T00:00"}}}
    | {"partition_id": 199, "value": {"count": 12_345, "sum": 123_456.78}}
]

BEST = Option(
    ProfileSize(NAME, 1_024, 2**40),
    "30 minutes",
    rows=9e9,
    takes=74_096.0,
    beyond=True,
    oldest=200_000.0,
    fresh=True,
    bill=COST.bill,
)
WHAT_IF = WhatIf(
    *(NAME, 12_345, 30.0, 123_456.7, timedelta(days=3), 16.2),
    times={},
    beside={},
    unknown={},
    options=[BEST, replace(BEST, bill=None, oldest=None, fresh=False)],
    cheapest=BEST,
)


@pytest.mark.parametrize(
    ("parts", "whole"),
    [
        ([run_table([(NAME, RUN)])], ("failed,error", "12.34M", "987,654", "1.23M", "31h00m", "123,456")),
        ([run_table([(NAME, RUN), ("x", None)], when=False)], ("failed,error", NAME, "nothingnew")),
        ([run_table([(NAME, RUN)], name=False)], ("2024-03-31", "failed,error")),
        ([progress_table(progressed(RUN, None))], ("123,456", "notcounted", "12,345,678,901")),
        ([pipeline_table([COST, COST])], (NAME, "123,456,789", "2,777.78", "277.78", "411.50EUR")),
        ([what_if_table(WHAT_IF)], (NAME, "~20h34m", "30minutes", "cannotkeepup", "12,345.00EUR")),
        ([day_table({date(2024, 3, 31): COST.bill})], ("2024-03-31", "12,345.00EUR")),
        (list(overview_tables(OVERVIEW)), (PATH, "12,345,678,901", "right-keyWithIndexToValue", '"11":')),
        (
            list(plan_parts(PLAN, verbose=True)),
            (f"rebuildstart{NAME}", "sink.schema-drift", "12,345,678,901bytes"),
        ),
        ([counts_table(QUARANTINE)], ("order_total_is_not_negative", "12/12345", "12.34M")),
        ([records(STATE)], ("c" * 30, "123456.78")),
    ],
)
def test_a_listing_fits_80_columns_and_loses_nothing(
    parts: list[RenderableType], whole: tuple[str, ...]
) -> None:
    text = at_80(*parts)
    assert max(map(len, text.splitlines())) <= 80, text
    assert "…" not in text
    for each in whole:
        assert each in joined(text) or each in _folded(text), text


def _folded(text: str) -> str:
    """What stands in the columns that were folded: here only names and paths, which have no spaces."""
    return joined("".join(line.split("  ")[0] for line in text.splitlines()))


def test_wide_has_what_the_default_leaves_out() -> None:
    narrow, wide = at_80(run_table([(NAME, RUN)])), at_80(run_table([(NAME, RUN)], wide=True), width=250)
    for only in (RUN.run_id, RUN.kind, "1,234,567", "2024-03-31 23:59", "12,345,678"):
        assert only in wide, wide
        assert only not in narrow, narrow


def test_what_a_run_has_not_counted_is_unknown_and_not_0() -> None:
    for run in (
        replace(RUN, state="running", verdict=None, counts=Counts()),
        replace(RUN, state="stopped", verdict=None, counts=Counts(), origin={UNCOUNTED: "continuous"}),
    ):
        line = at_80(run_table([("hourly", run)])).splitlines()[-1]
        assert line.split().count("unknown") == 3, line
        assert " 0 " not in line


def test_few_runs_are_not_extrapolated() -> None:
    few = replace(COST, bill=replace(COST.bill, runs=3))
    assert "unknown" in at_80(pipeline_table([few]))
    assert "411.50 EUR" not in at_80(pipeline_table([few], wide=True), width=200)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, ""), (0.04, "0.0s"), (61.9, "1m01s"), (3_600.0, "1h00m"), (200_000.0, "2d07h")],
)
def test_a_duration_is_short(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("rows", "text"), [(None, "unknown"), (0, "0"), (999_999, "999,999"), (999_999_999, "999.99 M")]
)
def test_many_rows_are_never_rounded_up(rows: int | None, text: str) -> None:
    assert count(rows, exact=False).plain == text
