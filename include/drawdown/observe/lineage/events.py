"""The events of a run: START when it began, COMPLETE, FAIL or ABORT with what it read and made visible.

A run that continues is RUNNING when its first rows are visible: who reads whom is known from then on, the
counts come with its end.
An output is named only when its rows are visible to readers, so a slice that is held is in no event until its
release, a run of its own. Rows that wait in a staging folder are never an output.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.facet_v2 import job_type_job, lifecycle_state_change_dataset

from drawdown.metastore.operations.runs import DRAIN, REPLAY
from drawdown.metastore.records import Run as RunRecord
from drawdown.observe.lineage import facets
from drawdown.observe.lineage.column_lineage import OutputColumns
from drawdown.observe.lineage.datasets import DatasetName, inputs_of, output_of, quarantine_of
from drawdown.observe.lineage.facts import Amount, RunFacts
from drawdown.observe.lineage.parent import event_run_id, parent_facet
from drawdown.rebuild.publish import KINDS as REBUILD_ENDINGS
from drawdown.spec import Pipeline, Project

PRODUCER = "urn:drawdown"
_ENDS = {
    "succeeded": RunState.COMPLETE,
    "stopped": RunState.COMPLETE,
    "failed": RunState.FAIL,
    "crashed": RunState.ABORT,
}
_LIFECYCLE = lifecycle_state_change_dataset.LifecycleStateChange
_WITHOUT_SOURCES = ("release", "discard", *REBUILD_ENDINGS.values())


@dataclass(frozen=True)
class EventMaker:
    """Makes the events of a project.

    Attributes:
        namespace: of the jobs.
        environment: may name the parent of a run that no Airflow task of ours submitted.
    """

    project: Project
    namespace: str
    environment: Mapping[str, str]

    def started(self, run: RunRecord, pipeline: Pipeline) -> RunEvent:
        """Return the event for a run that has begun."""
        assert run.started_at is not None
        inputs = [] if run.kind in _WITHOUT_SOURCES else self._inputs(pipeline)
        return RunEvent(
            eventTime=run.started_at.isoformat(),
            eventType=RunState.START,
            run=self._run(run, {}),
            job=self._job(run),
            inputs=inputs,
            outputs=[],
            producer=PRODUCER,
        )

    def running(self, run: RunRecord, pipeline: Pipeline, columns: OutputColumns | None) -> RunEvent:
        """Return the event for a run that continues and has made its first rows visible."""
        inputs, output = inputs_of(self.project, pipeline), output_of(self.project, pipeline)
        return RunEvent(
            eventTime=datetime.now(UTC).isoformat(),
            eventType=RunState.RUNNING,
            run=self._run(run, {}),
            job=self._job(run),
            inputs=[
                InputDataset(each.namespace, each.name, facets=_types(columns, source))
                for source, names in inputs.items()
                for each in names
            ],
            outputs=[
                OutputDataset(output.namespace, output.name, facets=self._columns(pipeline, columns)),
            ],
            producer=PRODUCER,
        )

    def ended(self, facts: RunFacts) -> RunEvent:
        """Return the event for a run that has ended."""
        run = facts.run
        assert run.ended_at is not None
        more = {
            "errorMessage": facets.error_facet(run),
            "test": facets.test_facet(facts),
        }
        return RunEvent(
            eventTime=run.ended_at.isoformat(),
            eventType=_ENDS[run.state],
            run=self._run(run, more, facts),
            job=self._job(run),
            inputs=self._read(facts),
            outputs=self._written(facts),
            producer=PRODUCER,
        )

    def _run(self, run: RunRecord, more: Mapping[str, Any], facts: RunFacts | None = None) -> Run:
        found = {
            "parent": parent_facet(run.origin, self.environment),
            "nominalTime": facets.nominal_time(run),
            "drawdown_slice": facets.slice_facet(run, facts.batches if facts else ()),
            **more,
        }
        return Run(runId=event_run_id(run.run_id), facets=_present(found))

    def _job(self, run: RunRecord) -> Job:
        # Kinds have jobs of their own: a backend takes a job's last run for its lineage, and a release has
        # no inputs.
        name = run.pipeline if run.kind == DRAIN else f"{run.pipeline}.{run.kind}"
        type = job_type_job.JobTypeJobFacet("BATCH", "DRAWDOWN", run.kind.upper().replace("-", "_"))
        return Job(namespace=self.namespace, name=name, facets={"jobType": type})

    def _inputs(self, pipeline: Pipeline) -> list[InputDataset]:
        found = inputs_of(self.project, pipeline)
        return [InputDataset(each.namespace, each.name) for names in found.values() for each in names]

    def _read(self, facts: RunFacts) -> list[InputDataset]:
        if facts.run.kind in _WITHOUT_SOURCES:
            return self._swapped_from(facts)
        inputs, pipeline = inputs_of(self.project, facts.pipeline), facts.pipeline
        read: list[InputDataset] = []
        for source, names in inputs.items():
            known = _types(facts.columns, source)
            # Rows are counted by source: of several topics nobody knows which had them.
            amount = facts.read.get(source) if len(names) == 1 else None
            rules = facets.source_assertions(pipeline, source, facts.rules.get(source, {}))
            more = {
                "inputStatistics": facets.input_statistics(amount) if amount else None,
                "dataQualityAssertions": rules if len(names) == 1 else None,
            }
            read += [
                InputDataset(each.namespace, each.name, facets=known, inputFacets=_present(more))
                for each in names
            ]
        return read

    def _written(self, facts: RunFacts) -> list[OutputDataset]:
        run, found = facts.run, []
        if (amount := self._visible(facts)) is not None:
            name = output_of(self.project, facts.pipeline)
            found.append(self._output(name, amount, self._about_output(facts)))
        if facts.set_aside is not None:
            found.append(self._output(quarantine_of(self.project, facts.pipeline), facts.set_aside, {}))
        if run.state == "succeeded" and run.kind in (REBUILD_ENDINGS["approve"], REBUILD_ENDINGS["rollback"]):
            name = output_of(self.project, facts.pipeline)
            found = [OutputDataset(name.namespace, name.name, facets=_present(self._about_output(facts)))]
        return found

    def _visible(self, facts: RunFacts) -> Amount | None:
        """Return how much became visible; nothing is an amount, too, when the run succeeded."""
        if facts.written is None and facts.run.state in ("succeeded", "stopped"):
            return None if facts.run.kind in _WITHOUT_SOURCES else Amount(0)
        return facts.written

    def _about_output(self, facts: RunFacts) -> dict[str, Any]:
        replaced = facts.run.kind in REBUILD_ENDINGS.values()
        replaced = replaced or (facts.pipeline.sink.mode == "complete" and facts.run.kind != REPLAY)
        return {
            **self._columns(facts.pipeline, facts.columns),
            "dataQualityAssertions": facets.output_assertions(facts),
            "lifecycleStateChange": lifecycle_state_change_dataset.LifecycleStateChangeDatasetFacet(
                _LIFECYCLE.OVERWRITE
            )
            if replaced
            else None,
        }

    def _columns(self, pipeline: Pipeline, columns: OutputColumns | None) -> dict[str, Any]:
        """Return the facets of the output's columns; none before a query was analysed."""
        if columns is None:
            return {}
        lineage = facets.column_lineage(columns, inputs_of(self.project, pipeline))
        return _present({"schema": facets.schema_facet(columns.types), "columnLineage": lineage})

    def _swapped_from(self, facts: RunFacts) -> list[InputDataset]:
        """Return the table of a rebuild that took the live one's place."""
        run = facts.run
        if run.kind != REBUILD_ENDINGS["approve"] or run.generation is None:
            return []
        shadow = output_of(self.project, facts.pipeline.as_shadow(run.generation, {}))
        return [InputDataset(shadow.namespace, shadow.name)]

    def _output(self, name: DatasetName, amount: Amount, about: Mapping[str, Any]) -> OutputDataset:
        return OutputDataset(
            name.namespace,
            name.name,
            facets=_present(about),
            outputFacets={"outputStatistics": facets.output_statistics(amount)},
        )


def _types(columns: OutputColumns | None, source: str) -> dict[str, Any]:
    """Return the facets of a source's columns."""
    types = columns.sources.get(source) if columns is not None else None
    return {"schema": facets.schema_facet(types)} if types else {}


def _present(facets: Mapping[str, Any]) -> dict[str, Any]:
    return {name: each for name, each in facets.items() if each is not None}
