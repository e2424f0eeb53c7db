"""Whether the brokers of a pipeline answer: asked before Spark starts, which takes longer to say so."""

from __future__ import annotations

from drawdown.brokers.client import require_broker
from drawdown.spec import Pipeline, Project

_ANSWERS_WITHIN = 2.0


def require_source_brokers(project: Project, pipeline: Pipeline) -> None:
    """Raise SourceError ``source.broker`` when the broker of a source does not answer within seconds."""
    for name, source in pipeline.sources.items():
        if source.format == "kafka":
            whose = f"source {name} of {pipeline.name}"
            require_broker(project.brokers[source.broker], "source.broker", whose, _ANSWERS_WITHIN)


def require_sink_broker(project: Project, pipeline: Pipeline) -> None:
    """Raise SourceError ``sink.broker`` when the broker of the sink does not answer within seconds."""
    if pipeline.sink.format == "kafka":
        whose = f"the sink of {pipeline.name}"
        require_broker(project.brokers[pipeline.sink.broker], "sink.broker", whose, _ANSWERS_WITHIN)
