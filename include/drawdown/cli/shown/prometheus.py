"""Writes the newest drain of each pipeline in Prometheus' text format, to scrape after a drain is over.

A drain often lives only for a minute, too short to be scraped. node_exporter's textfile collector and the
Pushgateway accept a file with this text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from datetime import datetime
from typing import get_args

from drawdown.cli.shown.runs import seconds
from drawdown.cost.bill import Bill, bill_of
from drawdown.metastore.records import Newest, RunState

_HELP = {
    "drawdown_run_state": "1 for the state that the newest run is in",
    "drawdown_run_rows": "Rows of the newest run by what became of them",
    "drawdown_run_batches": "Batches of the newest run",
    "drawdown_run_seconds": "How long the newest run took",
    "drawdown_run_start_time_seconds": "When the newest run started, seconds since 1970 UTC",
    "drawdown_run_end_time_seconds": "When the newest run ended, seconds since 1970 UTC",
    "drawdown_run_core_seconds": "Of cores, its share of what the application asked for, used, and had idle",
    "drawdown_run_gb_seconds": "Of 2^30 bytes of memory, its share of what the application asked for",
    "drawdown_run_cost": "What that costs at the price of its cluster profile",
    "drawdown_last_success_time_seconds": "When a run succeeded last, seconds since 1970 UTC",
    "drawdown_watermark_seconds": "The last watermark known, seconds since 1970 UTC",
}


def exposition(newest: Iterable[Newest]) -> str:
    """Return gauges per pipeline in Prometheus' text format 0.0.4, without values that a run lacks."""
    samples = [sample for each in newest for sample in _samples(each)]
    lines: list[str] = []
    for name, text in _HELP.items():
        lines += [f"# HELP {name} {text}", f"# TYPE {name} gauge"]
        lines += [f"{name}{{{labels}}} {value:.15g}" for found, labels, value in samples if found == name]
    return "\n".join(lines) + "\n"


def _samples(newest: Newest) -> Iterator[tuple[str, str, float]]:
    run = newest.run
    # Names of pipelines are letters, digits and _: nothing in a label needs escaping.
    pipeline = f'pipeline="{run.pipeline}"'
    for state in get_args(RunState):
        yield "drawdown_run_state", f'{pipeline},state="{state}"', float(run.state == state)
    if run.counted:
        for count, rows in asdict(run.counts).items():
            yield "drawdown_run_rows", f'{pipeline},count="{count}"', rows
        yield "drawdown_run_batches", pipeline, run.batches
    took = seconds(run)
    if took is not None:
        yield "drawdown_run_seconds", pipeline, took
    if run.usage is not None:
        yield from _costs(pipeline, bill_of(run.usage))
    times: dict[str, datetime | None] = {
        "drawdown_run_start_time_seconds": run.started_at,
        "drawdown_run_end_time_seconds": run.ended_at,
        "drawdown_last_success_time_seconds": newest.succeeded_at,
        "drawdown_watermark_seconds": newest.watermark,
    }
    for name, time in times.items():
        if time is not None:
            yield name, pipeline, time.timestamp()


def _costs(pipeline: str, bill: Bill) -> Iterator[tuple[str, str, float]]:
    of_cores = {"asked": bill.core_us, "idle": bill.idle_us}
    if not bill.unmeasured:
        of_cores["used"] = bill.cpu_us
    for what, core_us in of_cores.items():
        yield "drawdown_run_core_seconds", f'{pipeline},of="{what}"', core_us / 1e6
    yield "drawdown_run_gb_seconds", pipeline, float(bill.gb_hours * 3_600)
    for currency, amount in bill.money.items():
        yield "drawdown_run_cost", f'{pipeline},currency="{currency}"', float(amount)
