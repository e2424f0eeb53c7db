"""The tasks `audit` and `publish`: they report, per pipeline, what the application recorded.

Audit and publish themselves ran inside the application that drained: starting Spark is what a small run
mostly pays for. These tasks read the metastore, so what they say holds also when the driver died.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from drawdown.airflow.links import RunRecordLink
from drawdown.airflow.records import Slice, open_metastore, run_of, verdict_of
from drawdown.airflow.schedules import asset_of

if TYPE_CHECKING:
    from airflow.sdk import Context

    from drawdown.metastore import Metastore
    from drawdown.metastore.records import Run


class RecordOperator(BaseOperator):
    """Opens the metastore and finds the pipeline's run."""

    operator_extra_links = (RunRecordLink(),)

    def __init__(self, *, project_root: str, pipeline: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.project_root = project_root
        self.pipeline = pipeline

    def execute(self, context: Context) -> dict[str, Any]:
        ti = context["ti"]
        with open_metastore(self.project_root) as metastore:
            run = run_of(metastore, self.pipeline, ti.dag_id, ti.run_id)
            return self.report(context, metastore, run)

    def report(self, context: Context, metastore: Metastore, run: Run | None) -> dict[str, Any]:
        raise NotImplementedError


class AuditOperator(RecordOperator):
    """Succeeds when the slice passed; fails with the verdict's text, or with what ended the drain early.

    Its trigger rule is ALL_DONE: it reports also after a drain that failed. A pipeline of a group that
    had nothing to do is skipped.
    """

    def report(self, context: Context, metastore: Metastore, run: Run | None) -> dict[str, Any]:
        if run is None:
            raise self._no_run(context)
        verdict = verdict_of(metastore, run)
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
    that is scheduled by it knows what is new. Its outlet must be that asset.
    """

    def report(self, context: Context, metastore: Metastore, run: Run | None) -> dict[str, Any]:
        verdict = verdict_of(metastore, run) if run is not None else None
        judged = Slice.of(metastore, verdict) if verdict is not None else None
        if judged is None or not judged.rows:
            raise AirflowSkipException(f"{self.pipeline}: no rows to publish")
        held = metastore.held_slices(self.pipeline)
        if judged.unpublished and held and held[0].batch_ids[0] < judged.unpublished[0]:
            raise AirflowSkipException(f"{self.pipeline}: {judged.rows} rows wait behind held {held[0]}")
        if judged.unpublished:
            raise AirflowFailException(
                f"{self.pipeline}: batches {judged.unpublished[:20]} passed and are not published; "
                "the next drain publishes them"
            )
        event = judged.as_event()
        context["outlet_events"][asset_of(self.pipeline)].extra.update(event)
        self.log.info("%s: %d rows are visible", self.pipeline, judged.rows)
        return event


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
