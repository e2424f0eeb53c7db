"""Values of a column that `samples:` does not show leave the storage root by no way."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest
from typer.testing import CliRunner

from drawdown.airflow.documentation import request_body
from drawdown.cli.main import app
from drawdown.errors import AuditFailed, SourceError, SpecError
from drawdown.quality.data_docs import docs_folder
from drawdown.spec import load_pipeline
from tests.support.sandbox import Sandbox

CANARY = "canary-4711-of-a-row"
SPEC = """
sources:
  events: {format: json, path: landing/events, schema: events.ddl, malformed: fail}
transform: transform.sql
sink: {format: delta, path: tables/events, schema: events.ddl, publish: audited}
state: {partitions: 2}
"""
QUALITY = """
rules: [{name: short, check: length(secret) < 5, on_fail: warn}]
expectations:
  - {type: expect_column_values_to_be_between, kwargs: {column: n, max_value: 10}}
  - {type: expect_compound_columns_to_be_unique, kwargs: {column_list: [n, kind]}}
queries:
  - {name: few, unexpected: "SELECT * FROM slice WHERE n > 10"}
"""
# Of a list that shows neither, what is observed in the secret column is not shown either.
OF_THE_SECRET = """
expectations:
  - {type: expect_column_values_to_be_in_set, kwargs: {column: secret, value_set: [a]}}
  - {type: expect_column_distinct_values_to_be_in_set, kwargs: {column: secret, value_set: [a]}}
queries:
  - {name: few, unexpected: "SELECT n, secret FROM slice WHERE secret <> 'a'"}
"""


def events(sandbox: Sandbox, samples: str, quality: str = QUALITY) -> None:
    sandbox.pipeline(
        "events",
        SPEC + samples,
        events_ddl="n INT, kind STRING, secret STRING",
        transform_sql="SELECT * FROM events",
        quality_yaml=quality,
    )


def dump(sandbox: Sandbox) -> str:
    """Every table of the metastore but that of staged files: with each are the minimum and the maximum of
    its columns (docs/security.md)."""
    with sqlite3.connect(sandbox.root / "metastore.db") as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        assert {"verdicts", "runs", "batches", "staged_files"} <= set(tables)
        tables.remove("staged_files")
        return repr([database.execute(f"SELECT * FROM {name}").fetchall() for name in tables])


def failed_audit(sandbox: Sandbox) -> str:
    """Everything that a failed audit leaves outside the tables, as one text."""
    row = {"n": 99, "kind": "seen-kind", "secret": CANARY}
    sandbox.land_json("landing/events/a.json", [row, row])
    with pytest.raises(AuditFailed) as caught:
        sandbox.run("events")
    with sandbox.metastore() as metastore:
        (held,) = metastore.held_slices("events")
        run = metastore.run(held.verdict.run_id)
        body = request_body(held, run)
    docs = list(Path(sandbox.storage, docs_folder("events")).glob("*.html"))
    assert len(docs) == 2
    files = [path.read_text() for path in docs]
    printed = CliRunner(env={"DRAWDOWN_PROJECT": str(sandbox.root)}).invoke(app, ["runs", "events", "--json"])
    assert printed.exit_code == 0
    return "\n".join([str(caught.value), body, printed.output, *files, dump(sandbox)])


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("samples", "quality", "kind_is_shown"),
    [
        ("", QUALITY, True),
        ("samples: none", QUALITY, False),
        ("samples: [n]", QUALITY, False),
        ("samples: none", OF_THE_SECRET, False),
        ("samples: [n, kind]", OF_THE_SECRET, True),
    ],
    ids=["default", "none", "listed", "none-judged", "listed-judged"],
)
def test_a_value_of_a_hidden_column_is_found_nowhere(
    sandbox: Sandbox, samples: str, quality: str, kind_is_shown: bool
) -> None:
    events(sandbox, samples, quality)
    everything = failed_audit(sandbox)
    assert CANARY not in everything
    assert ("seen-kind" in everything) == kind_is_shown, "a judged or a listed column"


def test_with_all_whole_rows_are_shown_everywhere(sandbox: Sandbox) -> None:
    """Which shows that the search above finds what there is."""
    events(sandbox, "samples: all")
    assert failed_audit(sandbox).count(CANARY) > 5


@pytest.mark.parametrize(
    ("samples", "shown"), [("", False), ("samples: none", False), ("samples: all", True)]
)
def test_a_malformed_record_is_told_of_without_what_is_hidden(
    sandbox: Sandbox, samples: str, shown: bool
) -> None:
    events(sandbox, samples)
    broken = json.dumps({"n": "no number", "secret": CANARY})
    sandbox.land("landing/events/a.json", [broken])
    with pytest.raises(SourceError) as caught:
        sandbox.run("events")
    assert caught.value.id == "source.malformed"
    assert "1 malformed record" in str(caught.value)
    assert (CANARY in str(caught.value), CANARY in dump(sandbox)) == (shown, shown)


def test_a_pipeline_says_it_for_itself_and_the_project_for_the_others(sandbox: Sandbox) -> None:
    with (sandbox.root / "include" / "project.yaml").open("a") as project:
        project.write("samples: none\n")
    events(sandbox, "")
    assert not load_pipeline(sandbox.project, "events").sample_gate.shows("n", ["n"])
    events(sandbox, "samples: [kind]")
    gate = load_pipeline(sandbox.project, "events").sample_gate
    assert (gate.shows("KIND"), gate.shows("n", ["n"])) == (True, False)


@pytest.mark.sampled
@pytest.mark.parametrize("samples", ["samples: some", "samples: []", "samples: 3"])
def test_what_samples_cannot_be_is_refused(sandbox: Sandbox, samples: str) -> None:
    with pytest.raises(SpecError) as refused:
        events(sandbox, samples)
    assert "samples" in str(refused.value)
