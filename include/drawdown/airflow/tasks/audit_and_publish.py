"""The tasks `audit` and `publish`: they report, per pipeline, what the application recorded.

Audit and publish themselves ran inside the application that drained: starting Spark is what a small run
mostly pays for. These tasks read the metastore, so what they say holds also when the driver died.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from drawdown.airflow.links import RunRecordLink
from drawdown.airflow.records import Slice, open_metastore, runs_of, verdict_of
from drawdown.airflow.schedules import asset_of
from drawdown.airflow.tasks.asset_events import news_of

if TYPE_CHECKING:
    from airflow.sdk import Context

    from drawdown.metastore import Metastore
    from drawdown.metastore.records import Run


class RecordOperator(BaseOperator):
    """Opens the metastore and finds the pipeline's runs: one of each try, newest first."""

    operator_extra_links = (RunRecordLink(),)

    def __init__(self, *, project_root: str, pipeline: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.project_root = project_root
        self.pipeline = pipeline

    def execute(self, context: Context) -> dict[str, Any]:
        ti = context["ti"]
        with open_metastore(self.project_root) as metastore:
            runs = runs_of(metastore, self.pipeline, ti.dag_id, ti.run_id)
            return self.report(context, metastore, runs)

    def report(self, context: Context, metastore: Metastore, runs: Sequence[Run]) -> dict[str, Any]:
        raise NotImplementedError


class AuditOperator(RecordOperator):
    """Succeeds when the slice passed; fails with the verdict's text, or with what ended the drain early.

    Its trigger rule is ALL_DONE: it reports also after a drain that failed. A pipeline of a group that
    had nothing to do is skipped.
    """

    def report(self, context: Context, metastore: Metastore, runs: Sequence[Run]) -> dict[str, Any]:
        if not runs:
            raise self._no_run(context)
        run, verdict = runs[0], verdict_of(metastore, runs)
        if verdict is not None and verdict.outcome in ("fail", "error"):
            raise AirflowFailException(f"audit of {self.pipeline}: {verdict.outcome}\n{verdict.text}")
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

    The asset event carries rows, batch ids (first and last), offsets and the verdict, so a pipeline
    that is scheduled by it knows what is new. It also covers what no event has reported of earlier tries
    and of runs that never came to this task. Its inlet and its outlet must be that asset; its trigger rule is
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
        self.log.info("%s: %d rows are visible", self.pipeline, news.rows)
        return event

    def _waits(self, metastore: Metastore, runs: Sequence[Run]) -> str | None:
        """What of the slice waits behind a held one. Raises when it should be visible and is not."""
        verdict = verdict_of(metastore, runs)
        judged = Slice.of(metastore, verdict) if verdict is not None else None
        if judged is None or not judged.rows or not judged.unpublished:
            return None
        held = metastore.held_slices(self.pipeline)
        if held and held[0].batch_ids[0] < judged.unpublished[0]:
            return f"{judged.rows} rows wait behind held {held[0]}"
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
        # Airflow would call the DAG run a success: of a drain that failed it only asks what follows it.
        return (
            f"{run.pipeline}: run {run.run_id} was asked to stop before its end; what it had drained is "
            "audited and published, the next run goes on where it stopped"
        )
    return (
        f"{run.pipeline}: run {run.run_id} is {run.state}: its driver died, or is still stopping; "
        "the next run settles it"
    )
