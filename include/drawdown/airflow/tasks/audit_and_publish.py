"""The tasks `audit` and `publish`: they report, per pipeline, what the application recorded.

The audit and the publish themselves ran inside the application that drained, because a small run takes most
of its time to start Spark. These tasks read the metastore, so they report correctly even if the driver died.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from drawdown.airflow.held_requests import where_to_decide
from drawdown.airflow.links import RunRecordLink
from drawdown.airflow.run_records import Slice, open_metastore, runs_of, verdict_of
from drawdown.airflow.schedules import asset_of
from drawdown.airflow.tasks.asset_events import news_of
from drawdown.airflow.tasks.project_operators import PipelineOperator
from drawdown.airflow.tasks.task_failures import plainly
from drawdown.values.text import counted

if TYPE_CHECKING:
    from airflow.sdk import Context

    from drawdown.metastore import Metastore
    from drawdown.metastore.records import Run


class RecordOperator(PipelineOperator):
    """Opens the metastore and finds the pipeline's runs: one per try, newest first."""

    operator_extra_links = (RunRecordLink(),)

    @plainly
    def execute(self, context: Context) -> dict[str, Any]:
        ti = context["ti"]
        with open_metastore(self.project_root) as metastore:
            runs = runs_of(metastore, self.pipeline, ti.dag_id, ti.run_id)
            return self.report(context, metastore, runs)

    def report(self, context: Context, metastore: Metastore, runs: Sequence[Run]) -> dict[str, Any]:
        raise NotImplementedError


class AuditOperator(RecordOperator):
    """Succeeds when the slice passed; fails with the verdict's text, or with what ended the drain early.

    Its trigger rule is ALL_DONE, so it also reports after a failed drain. A pipeline of a group that
    had nothing to do is skipped.
    """

    def report(self, context: Context, metastore: Metastore, runs: Sequence[Run]) -> dict[str, Any]:
        if not runs:
            raise self._no_run(context)
        run, verdict = runs[0], verdict_of(metastore, runs)
        if verdict is not None and verdict.outcome in ("fail", "error"):
            waiting = where_to_decide(metastore, self.pipeline)
            raise AirflowFailException(
                "\n".join([f"audit of {self.pipeline}: {verdict.outcome}", verdict.text, *waiting])
            )
        if run.state != "succeeded":
            raise AirflowFailException(_why(run))
        text = verdict.text if verdict is not None else "no rows to judge"
        self.log.info("audit of %s: %s\n%s", self.pipeline, run.verdict, text)
        return {"run_id": run.run_id, "verdict": run.verdict}

    def _no_run(self, context: Context) -> AirflowSkipException | AirflowFailException:
        found = context["ti"].xcom_pull(task_ids="preflight") or {}
        if found.get(self.pipeline, {"work": True})["work"]:
            return AirflowFailException(
                f"{self.pipeline}: the application ended before it came to it; see the log of drain"
            )
        return AirflowSkipException(f"{self.pipeline}: nothing new")


class PublishOperator(RecordOperator):
    """Verifies that what passed is visible and updates the pipeline's asset; skipped when nothing is new.

    The asset event contains rows, batch ids (first and last), offsets and the verdict, so that a pipeline
    scheduled by it knows what is new. It also covers earlier tries, and runs that never reached this task,
    unless an event has reported them. Its inlet and its outlet must be that asset. Its trigger rule is
    NONE_FAILED: there may be something to report although nothing was drained.
    """

    def report(self, context: Context, metastore: Metastore, runs: Sequence[Run]) -> dict[str, Any]:
        waits = self._waits(metastore, runs)
        asset = asset_of(self.pipeline)
        news = news_of(metastore, self.pipeline, context["inlet_events"][asset])
        if not news.rows:
            raise AirflowSkipException(
                f"{self.pipeline}: {waits or 'no rows that an event has not reported'}"
            )
        event = news.as_event()
        context["outlet_events"][asset].extra.update(event)
        self.log.info("%s: %s visible", self.pipeline, counted(news.rows, "row"))
        return event

    def _waits(self, metastore: Metastore, runs: Sequence[Run]) -> str | None:
        """Return what waits behind a held slice, if anything. Raises when it should be visible and is not."""
        verdict = verdict_of(metastore, runs)
        judged = Slice.of(metastore, verdict) if verdict is not None else None
        if judged is None or not judged.rows or not judged.unpublished:
            return None
        held = metastore.held_slices(self.pipeline)
        if held and held[0].batch_ids[0] < judged.unpublished[0]:
            return f"waiting behind held {held[0]}: {counted(judged.rows, 'row')}"
        raise AirflowFailException(
            f"{self.pipeline}: batches {judged.unpublished[:20]} passed and are not published; "
            "the next drain publishes them"
        )


def _why(run: Run) -> str:
    if run.error:
        lines = [f"{run.pipeline}: {run.error.get('id')}: {run.error.get('what')}"]
        lines += [f"  {key}: {run.error[key]}" for key in ("where", "do") if run.error.get(key)]
        return "\n".join(lines)
    if run.state == "stopped":
        # The audit fails too: for the state of the DAG run, Airflow looks at the last tasks only.
        return (
            f"{run.pipeline}: run {run.run_id} was asked to stop early; its batches are audited and"
            " published, and the next run continues where it stopped"
        )
    return (
        f"{run.pipeline}: run {run.run_id} is {run.state}: its driver died, or is still stopping; "
        "the next run settles it"
    )
