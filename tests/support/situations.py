"""What an operator meets, as records make it: a state of the fleet page, why, and where the remedy is."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from drawdown.metastore.records import Counts
from tests.support.compared_rebuild import rebuilt
from tests.support.fleet_records import FleetRecords

MakeRecords = Callable[[FleetRecords, str], None]


@dataclass(frozen=True)
class Situation:
    """What a test makes, and what an operator reads.

    Attributes:
        state: in the first column of the fleet page.
        why: in the sentence beside it.
        leads_to: the address of the second click, for a pipeline NAME; below /drawdown if the page is ours.
        remedy: on the page behind that click, or, where it is Airflow's, in the sentence itself.
    """

    make: MakeRecords
    state: str
    why: str
    leads_to: str
    remedy: str
    spec: str = ""


def origin(name: str) -> dict[str, object]:
    return {"dag_id": name, "dag_run_id": "manual__1", "task_id": "drain", "try_number": 1}


def went_well(fleet: FleetRecords, name: str, **counts: int) -> None:
    rows = Counts(**{"read": 1000, "fed": 1000, "staged": 1000, "published": 1000, **counts})
    fleet.ran(name, verdict="pass", counts=rows, stop_reason="drained", origin=origin(name))


def failed(error: str, what: str, do: str) -> MakeRecords:
    def make(fleet: FleetRecords, name: str) -> None:
        went_well(fleet, name)
        found = {"id": error, "what": what, "where": "x", "do": do.replace("NAME", name)}
        fleet.ran(name, "failed", error=found, origin=origin(name))

    return make


def held(fleet: FleetRecords, name: str) -> None:
    fleet.ran(name, "failed", verdict="fail", origin=origin(name))
    fleet.held(name, rows=12)


def stale(fleet: FleetRecords, name: str) -> None:
    went_well(fleet, name)
    time.sleep(1.1)  # longer than the promise


def waits_since(hours: int, **more: object) -> MakeRecords:
    def make(fleet: FleetRecords, name: str) -> None:
        went_well(fleet, name)
        oldest = (datetime.now(UTC) - timedelta(hours=hours)).isoformat()
        fleet.waits(name, **{"files": 3, "bytes": 9, "too_old": 0, "oldest": oldest, **more})

    return make


def rebuild(fleet: FleetRecords, name: str) -> None:
    went_well(fleet, name)
    rebuilt(fleet, name)


def lease_held(fleet: FleetRecords, name: str) -> None:
    went_well(fleet, name)
    fleet.ran(name, "running", origin=origin(name))
    fleet.leased(name, "1")


OF_RUN = "/drawdown/runs/NAME/manual__1"
OF_DAG = "/dags/NAME"
SITUATIONS = {
    "held": Situation(
        held, "held", "12 rows", "/drawdown/decisions?pipeline=NAME", "drawdown release NAME --why"
    ),
    "stale": Situation(
        stale, "stale", "nothing was published within freshness:", OF_DAG, "Start a run",
        'schedule: "@hourly"\nfreshness: 1 second\n',
    ),
    "lagging": Situation(
        waits_since(5), "lagging", "3 files wait at events, the oldest for 5 hours", OF_DAG, "Start a run",
        "alerts: {lagging_after: 1 hour}\n",
    ),
    "late flood": Situation(
        lambda fleet, name: went_well(fleet, name, late=400), "late flood",
        "400 of 1,000 rows in its newest run came behind the watermark",
        "/drawdown/dags/NAME?pipeline=NAME", "give its watermark a longer delay",
    ),
    "broker away": Situation(
        failed("source.unreachable", "no broker answers at b:9092", "start it"), "failed",
        "source.unreachable: no broker answers at b:9092", OF_RUN, "start it",
    ),
    "checkpoint torn": Situation(
        failed("checkpoint.torn", "offsets/3 is cut off", "drawdown checkpoint repair NAME"), "refused",
        "checkpoint.torn: offsets/3 is cut off", OF_RUN, "drawdown checkpoint repair NAME",
    ),
    "retention at risk": Situation(
        waits_since(1, headroom=3_590.0), "retention at risk",
        "the broker deletes unread records of events in 5", OF_DAG, "Start a run now",
    ),
    "schema drift": Situation(
        failed("sink.schema-drift", "the table has another column", "drawdown plan NAME"), "refused",
        "sink.schema-drift: the table has another column", OF_RUN, "drawdown plan NAME",
    ),
    "cluster not coming": Situation(
        failed("cluster.not-up", "no worker came within 5 minutes", "look at its log"), "failed",
        "cluster.not-up: no worker came within 5 minutes", OF_RUN, "look at its log",
    ),
    "disk full": Situation(
        failed("storage.full", "no space is left on /data", "make room"), "failed",
        "storage.full: no space is left on /data", OF_RUN, "make room",
    ),
    "rebuild waiting": Situation(
        rebuild, "rebuild waiting", "the rebuild (generation 9) is compared and waits for a decision",
        "/drawdown/decisions?pipeline=NAME", "drawdown rebuild approve NAME --why",
    ),
    "lease held": Situation(
        lease_held, "running", "elsewhere pid 1 has held its checkpoint since", f"{OF_DAG}/runs/manual__1",
        "drawdown logs NAME --follow",
    ),
    "quarantine growing": Situation(
        lambda fleet, name: went_well(fleet, name, quarantined=150), "quarantine growing",
        "set aside 150 rows in its newest run, of 1,000 read", "/drawdown/quarantine/NAME/NAME",
        "Quarantine of NAME",
    ),
}  # fmt: skip
