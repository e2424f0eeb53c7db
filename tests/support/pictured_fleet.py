"""A shop's fleet in several states, with tables between its pipelines: for pictures, and to look at."""

from __future__ import annotations

from datetime import timedelta

from drawdown.metastore.records import Counts
from tests.support.fleet_records import FleetRecords
from tests.support.replayed_days import day, drained, replayable, replayed
from tests.support.situations import failed, held, origin, waits_since, went_well

READS = {
    "orders_raw": ("landing/orders",),
    "payments_raw": ("landing/payments",),
    "customers": ("landing/customers",),
    "orders_clean": ("tables/orders_raw", "tables/customers"),
    "payments_matched": ("tables/payments_raw", "tables/orders_clean"),
    "revenue_daily": ("tables/payments_matched",),
    "baskets_hourly": ("tables/orders_clean",),
    "fraud_signals": ("tables/payments_matched", "tables/customers"),
}
FLEET = (*READS, "revenue_by_day")
_SPEC = """
owner: shop
tags: [shop]
{more}
sources:
{sources}
transform: transform.sql
sink: {{format: delta, path: tables/{name}, schema: out.ddl}}
"""


def pictured_fleet(fleet: FleetRecords) -> None:
    """Record pipelines that are well, held, failed and lagging, and one with a calendar."""
    for name, paths in READS.items():
        fleet.pipeline(name)
        sources = "\n".join(f"  s{n}: {{format: text, path: {path}}}" for n, path in enumerate(paths))
        more = "freshness: 2 hours" if name.endswith("raw") else "alerts: {lagging_after: 2 hours}"
        (fleet.root / "include/pipelines" / name / "pipeline.yaml").write_text(
            _SPEC.format(name=name, sources=sources, more=more)
        )
        (fleet.root / "include/pipelines" / name / "transform.sql").write_text("SELECT value FROM s0")
        for number in range(12):
            went_well(fleet, name, late=number)
    held(fleet, "payments_matched")
    failed("checkpoint.torn", "offsets/41 is cut off", "drawdown checkpoint repair NAME")(
        fleet, "orders_clean"
    )
    waits_since(9)(fleet, "customers")
    calendar_of(fleet, "revenue_by_day")
    fleet.record(*FLEET)


def calendar_of(fleet: FleetRecords, name: str) -> None:
    """A year of days: a gap, replays, one that failed, and days whose source was replayed since."""
    replayable(fleet, name, reads="tables/payments_matched", more="tags: [shop]\nowner: shop\n")
    ends = day(1) + timedelta(days=200)
    drained(
        fleet, name, (day(1) - timedelta(days=120), day(40)), (day(43), ends),
        watermark=ends - timedelta(hours=5),
    )  # fmt: skip
    fleet.ran(name, verdict="pass", counts=Counts(read=9, fed=9, staged=9, published=9), origin=origin(name))
    replayed(fleet, name, day(60), day(75))
    replayed(fleet, name, day(100), day(101), state="failed")
    replayed(fleet, "payments_matched", day(120), day(127), name)
