"""Why is this red, and what must I do: each situation is answered two clicks from Airflow's home.

The first click is *Fleet* in the navigation, the second a link in the row of the pipeline.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from html import unescape

import pytest
from typer.testing import CliRunner

from drawdown.cli.main import app
from drawdown.metastore.records import Counts
from tests.pages.conftest import Ask
from tests.pages.test_decisions import rebuilt
from tests.support.fleet_records import FleetRecords

NAME = "orders"
ORIGIN = {"dag_id": NAME, "dag_run_id": "manual__1", "task_id": "drain", "try_number": 1}


@dataclass(frozen=True)
class Situation:
    """What a test makes, and what an operator reads.

    Attributes:
        state: in the first column of the fleet page.
        why: in the sentence beside it.
        leads_to: the address of the second click; one of Airflow's own pages has no prefix of ours.
        remedy: on the page behind that click, or, where it is Airflow's, in the sentence itself.
    """

    make: Callable[[FleetRecords], None]
    state: str
    why: str
    leads_to: str
    remedy: str
    spec: str = ""


def went_well(fleet: FleetRecords, **counts: int) -> None:
    rows = Counts(**{"read": 1000, "fed": 1000, "staged": 1000, "published": 1000, **counts})
    fleet.ran(NAME, verdict="pass", counts=rows, stop_reason="drained", origin=ORIGIN)


def failed(error: str, what: str, do: str) -> Callable[[FleetRecords], None]:
    def make(fleet: FleetRecords) -> None:
        went_well(fleet)
        fleet.ran(NAME, "failed", error={"id": error, "what": what, "where": "x", "do": do}, origin=ORIGIN)

    return make


def held(fleet: FleetRecords) -> None:
    fleet.ran(NAME, "failed", verdict="fail", origin=ORIGIN)
    fleet.held(NAME, rows=12)


def stale(fleet: FleetRecords) -> None:
    went_well(fleet)
    time.sleep(1.1)  # longer than the promise


def waits_since(hours: int, **more: object) -> Callable[[FleetRecords], None]:
    def make(fleet: FleetRecords) -> None:
        went_well(fleet)
        oldest = (datetime.now(UTC) - timedelta(hours=hours)).isoformat()
        fleet.waits(NAME, **{"files": 3, "bytes": 9, "too_old": 0, "oldest": oldest, **more})

    return make


def rebuild(fleet: FleetRecords) -> None:
    went_well(fleet)
    rebuilt(fleet, NAME)


def lease_held(fleet: FleetRecords) -> None:
    went_well(fleet)
    fleet.ran(NAME, "running", origin=ORIGIN)
    fleet.leased(NAME, "1")


OF_RUN = f"/drawdown/runs/{NAME}/manual__1"
OF_DAG = f"/dags/{NAME}"
SITUATIONS = {
    "held": Situation(
        held, "held", "12 rows", f"/drawdown/decisions?pipeline={NAME}", "drawdown release orders --why"
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
        lambda fleet: went_well(fleet, late=400), "late flood",
        "400 of 1,000 rows in its newest run came behind the watermark",
        f"/drawdown/dags/{NAME}?pipeline={NAME}", "give its watermark a longer delay",
    ),
    "broker away": Situation(
        failed("source.unreachable", "no broker answers at b:9092", "start it"), "failed",
        "source.unreachable: no broker answers at b:9092", OF_RUN, "start it",
    ),
    "checkpoint torn": Situation(
        failed("checkpoint.torn", "offsets/3 is cut off", "drawdown checkpoint repair orders"), "refused",
        "checkpoint.torn: offsets/3 is cut off", OF_RUN, "drawdown checkpoint repair orders",
    ),
    "retention at risk": Situation(
        waits_since(1, headroom=3_590.0), "retention at risk",
        "the broker deletes unread records of events in 59 minutes", OF_DAG, "Start a run now",
    ),
    "schema drift": Situation(
        failed("sink.schema-drift", "the table has another column", "drawdown plan orders"), "refused",
        "sink.schema-drift: the table has another column", OF_RUN, "drawdown plan orders",
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
        f"/drawdown/decisions?pipeline={NAME}", "drawdown rebuild approve orders --why",
    ),
    "lease held": Situation(
        lease_held, "running", "elsewhere pid 1 has held its checkpoint since", f"{OF_DAG}/runs/manual__1",
        "drawdown logs orders --follow",
    ),
    "quarantine growing": Situation(
        lambda fleet: went_well(fleet, quarantined=5), "quarantine growing",
        "set aside 5 rows in its newest run, of 1,000 read", f"/drawdown/quarantine/{NAME}/{NAME}",
        "Quarantine of orders",
    ),
}  # fmt: skip


@pytest.mark.capability("SEE-11")
@pytest.mark.parametrize("name", SITUATIONS)
def test_fleet_says_why_and_its_link_leads_to_what_to_do(
    fleet: FleetRecords, as_reader_of: Ask, name: str
) -> None:
    situation = SITUATIONS[name]
    fleet.pipeline(NAME, situation.spec)
    situation.make(fleet)
    fleet.record(NAME)
    client = as_reader_of(NAME)
    [row] = re.findall(r"<tbody>\s*<tr>(.*?)</tr>", client.get("/fleet").text, re.DOTALL)
    state, _, sentence = re.split(r"</t[dh]>", row)[:3]
    assert words(state) == situation.state
    assert situation.why in words(sentence)
    [address] = re.findall(r'<a (?:class="out" )?href="([^"]*)"', sentence)
    assert unescape(address) == situation.leads_to
    if situation.leads_to.startswith("/drawdown"):
        behind = client.get(unescape(address).removeprefix("/drawdown"))
        assert behind.status_code == 200
        assert situation.remedy in words(behind.text)
    else:
        assert situation.remedy in words(sentence)
    told = CliRunner().invoke(app, ["status", "--json"]).stdout
    assert f'"state": "{situation.state}"' in told, "drawdown status shows the same word"


def words(html: str) -> str:
    """The text as somebody reads it."""
    return " ".join(unescape(re.sub(r"<[^>]*>", "", html)).split())
