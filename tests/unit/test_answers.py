"""Who decided, and why, is read from the record of an answer; an XCom only names it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from airflow.sdk.exceptions import AirflowFailException

from drawdown.airflow.tasks.answers import Answer, keep, kept
from drawdown.airflow.tasks.reasoned_request import _allowed
from drawdown.metastore import Metastore
from drawdown.metastore.records import Run

ANSWER = Answer("release", "ada", "looked at")


def context(dag_run: str = "held__events__1") -> Any:
    """What is read of Airflow's context: which DAG run it is."""
    return cast(Any, {"ti": SimpleNamespace(dag_id="drawdown__decide", run_id=dag_run)})


@pytest.fixture
def metastore(tmp_path: Path) -> Iterator[Metastore]:
    with Metastore.open(f"sqlite:///{tmp_path / 'm.db'}") as opened:
        yield opened


def test_an_answer_comes_back_as_it_was_given_and_stays_as_a_record(metastore: Metastore) -> None:
    record = keep(metastore, "events", ANSWER, context())
    assert kept(metastore, "events", record, context()) == ANSWER
    [run] = metastore.runs("events")
    assert (run.kind, run.state, run.stop_reason) == ("answer", "succeeded", "release: looked at")


def test_what_a_task_writes_into_the_xcom_is_no_answer(metastore: Metastore) -> None:
    """As are an answer to another request, one about another pipeline, and a run that is no answer."""
    other = keep(metastore, "events", ANSWER, context("held__events__2"))
    tables = keep(metastore, "tables", ANSWER, context())
    metastore.start_run(
        Run("r1", "events", origin={"dag_id": "drawdown__decide", "dag_run_id": "held__events__1"})
    )
    for forged in ({"choice": "release", "by": "ada", "why": "mine"}, other, tables, "r1", "no-run"):
        with pytest.raises(AirflowFailException, match="no answer to this request"):
            kept(metastore, "events", forged, context())


def test_only_an_approver_is_allowed_and_nobody_is_not() -> None:
    ada = {"id": "ada", "name": "Ada L."}
    assert _allowed(ada, ("ada",), "events") == _allowed(ada, (), "events") == "Ada L."
    with pytest.raises(AirflowFailException, match="is not among the `approvers:` of events"):
        _allowed(ada, ("grace",), "events")
    with pytest.raises(AirflowFailException, match="does not know who answered"):
        _allowed(None, (), "events")
