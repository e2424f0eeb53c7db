"""Why is this red, and what must I do: each situation is answered two clicks from Airflow's home.

The first click is *Fleet* in the navigation, the second a link in the row of the pipeline.
"""

from __future__ import annotations

import re
from html import unescape

import pytest
from typer.testing import CliRunner

from drawdown.cli.main import app
from tests.pages.conftest import Ask
from tests.support.fleet_records import FleetRecords
from tests.support.situations import SITUATIONS

NAME = "orders"


@pytest.mark.capability("SEE-11")
@pytest.mark.parametrize("name", SITUATIONS)
def test_fleet_says_why_and_its_link_leads_to_what_to_do(
    fleet: FleetRecords, as_reader_of: Ask, name: str
) -> None:
    situation = SITUATIONS[name]
    fleet.pipeline(NAME, situation.spec)
    situation.make(fleet, NAME)
    fleet.record(NAME)
    client = as_reader_of(NAME)
    [row] = re.findall(r"<tbody>\s*<tr>(.*?)</tr>", client.get("/fleet").text, re.DOTALL)
    state, _, sentence = re.split(r"</t[dh]>", row)[:3]
    assert words(state) == situation.state
    assert situation.why in words(sentence)
    [address] = re.findall(r'<a (?:class="out" )?href="([^"]*)"', sentence)
    assert unescape(address) == situation.leads_to.replace("NAME", NAME)
    if situation.leads_to.startswith("/drawdown"):
        behind = client.get(unescape(address).removeprefix("/drawdown"))
        assert behind.status_code == 200
        assert situation.remedy.replace("NAME", NAME) in words(behind.text)
    else:
        assert situation.remedy.replace("NAME", NAME) in words(sentence)
    told = CliRunner().invoke(app, ["status", "--json"]).stdout
    assert f'"state": "{situation.state}"' in told, "drawdown status shows the same word"


def words(html: str) -> str:
    """The text as somebody reads it."""
    return " ".join(unescape(re.sub(r"<[^>]*>", "", html)).split())
