"""The figures of all pipelines as Prometheus metrics.

Each name stands once, in FAMILIES. A value that is not known is left out; zeros are not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from drawdown.fleet.standing import WORST_FIRST
from drawdown.fleet.started_clusters import red_clusters
from drawdown.metastore import Metastore
from drawdown.observe.figures import Seen

CONTENT_TYPE: str = CONTENT_TYPE_PLAIN_0_0_4

Sample = tuple[Sequence[str], float]
"""Values of the labels after `pipeline`, and the value."""


class Family(NamedTuple):
    """A metric: its name, help text and labels beside `pipeline`, and what it says of a pipeline."""

    name: str
    help: str
    labels: tuple[str, ...]
    of: Callable[[Seen], Iterator[Sample]]
    counts: bool = False


def _one(value: Callable[[Seen], float | None]) -> Callable[[Seen], Iterator[Sample]]:
    def samples(seen: Seen) -> Iterator[Sample]:
        found = value(seen)
        if found is not None:
            yield (), found

    return samples


def _each(values: Callable[[Seen], Mapping[str, float]]) -> Callable[[Seen], Iterator[Sample]]:
    return lambda seen: (((label,), value) for label, value in values(seen).items())


def _at(moment: datetime | None) -> float | None:
    return None if moment is None else moment.timestamp()


def _since(seen: Seen, moment: datetime | None) -> float | None:
    return None if moment is None else max((seen.now - moment).total_seconds(), 0.0)


def _backlog(seen: Seen) -> Iterator[Sample]:
    return (((each.source, each.unit), each.amount) for each in seen.figures.backlog)


def _backlog_bytes(seen: Seen) -> Iterator[Sample]:
    return (((each.source,), each.bytes) for each in seen.figures.backlog if each.bytes is not None)


def _oldest(seen: Seen) -> Iterator[Sample]:
    for each in seen.figures.backlog:
        age = _since(seen, each.oldest) if each.amount else 0.0
        if age is not None:
            yield (each.source,), age


def _headroom(seen: Seen) -> Iterator[Sample]:
    for each in seen.figures.backlog:
        if (left := seen.headroom(each)) is not None:
            yield (each.source,), left


def _info(seen: Seen) -> Iterator[Sample]:
    figures = seen.figures
    yield (figures.dag_id, figures.group or "", figures.owner), 1


FAMILIES = (
    Family(
        "drawdown_pipeline_info",
        "Where a pipeline runs and whose it is; always 1.",
        ("dag_id", "group", "owner"),
        _info,
    ),
    Family(
        "drawdown_state",
        "1 for the state of the pipeline, 0 for all others.",
        ("state",),
        _each(lambda seen: {state: float(state == seen.finding.state) for state in WORST_FIRST}),
    ),
    Family(
        "drawdown_last_published_seconds",
        "When rows became visible last, in seconds since 1970 UTC.",
        (),
        _one(lambda seen: _at(seen.figures.published_at)),
    ),
    Family(
        "drawdown_freshness_age_seconds",
        "For how long nothing has been published, from the first run on.",
        (),
        _one(lambda seen: None if seen.age is None else seen.age.total_seconds()),
    ),
    Family(
        "drawdown_freshness_promise_seconds",
        "The value of freshness in pipeline.yaml.",
        (),
        _one(lambda seen: seen.figures.promise),
    ),
    Family(
        "drawdown_backlog",
        "What waited at a source when somebody looked last: files, offsets, versions or rows.",
        ("source", "unit"),
        _backlog,
    ),
    Family(
        "drawdown_backlog_bytes", "Size of the files that waited at a source.", ("source",), _backlog_bytes
    ),
    Family(
        "drawdown_backlog_seen_seconds",
        "When somebody looked at the sources last, in seconds since 1970 UTC.",
        (),
        _one(lambda seen: _at(seen.figures.backlog_at)),
    ),
    Family(
        "drawdown_oldest_unread_seconds",
        "For how long the oldest unread file or record has waited; 0 when nothing waits.",
        ("source",),
        _oldest,
    ),
    Family(
        "drawdown_retention_headroom_seconds",
        "For how long the broker keeps the first unread record at least; without a value nothing is at risk.",
        ("source",),
        _headroom,
    ),
    Family(
        "drawdown_held_slices",
        "Slices that wait for a decision.",
        (),
        _one(lambda seen: seen.figures.held.slices if seen.figures.held else 0),
    ),
    Family(
        "drawdown_held_rows",
        "Rows in slices that wait for a decision.",
        (),
        _one(lambda seen: seen.figures.held.rows if seen.figures.held else 0),
    ),
    Family(
        "drawdown_rebuild_waiting",
        "1 while a rebuild waits for a decision.",
        (),
        _one(lambda seen: float(seen.figures.rebuild is not None)),
    ),
    Family(
        "drawdown_rows_total",
        "Rows of all runs, by what became of them.",
        ("kind",),
        _each(lambda seen: seen.figures.totals),
        counts=True,
    ),
    Family(
        "drawdown_late_rows_total",
        "Rows behind the watermark of all runs.",
        (),
        _one(lambda seen: seen.figures.totals.get("late", 0)),
        counts=True,
    ),
    Family(
        "drawdown_watermark_lag_seconds",
        "By how much the watermark is behind the present.",
        (),
        _one(lambda seen: _since(seen, seen.figures.watermark)),
    ),
    Family(
        "drawdown_state_rows",
        "Rows of state after the newest run.",
        (),
        _one(lambda seen: seen.figures.last.state_rows if seen.figures.last else None),
    ),
    Family(
        "drawdown_state_bytes",
        "Memory of the state stores after the newest run.",
        (),
        _one(lambda seen: seen.figures.last.state_bytes if seen.figures.last else None),
    ),
    Family(
        "drawdown_run_seconds",
        "Seconds of the newest run by phase.",
        ("phase",),
        _each(lambda seen: seen.figures.last.phases if seen.figures.last else {}),
    ),
    Family(
        "drawdown_run_set_aside_rows",
        "Rows that the newest run set aside: malformed, in the future, or refused by a rule.",
        (),
        _one(lambda seen: seen.figures.last.set_aside if seen.figures.last else None),
    ),
    Family(
        "drawdown_cost_month_to_date",
        "Cost of the runs that began since the first of this month, UTC.",
        ("currency",),
        _each(lambda seen: {currency: float(amount) for currency, amount in seen.figures.cost.items()}),
    ),
    Family(
        "drawdown_figures_recorded_seconds",
        "When all this was recorded last, in seconds since 1970 UTC.",
        (),
        _one(lambda seen: _at(seen.recorded_at)),
    ),
)


CLUSTERS = "drawdown_clusters"
"""The one metric that is of no pipeline."""

STATES = ("starting", "up", "ending", "not known to be gone")


def clusters_by_state(metastore: Metastore) -> dict[str, int]:
    """Return how many clusters of `kind: commands` there are in each of STATES."""
    red = {each.record.instance for each in red_clusters(metastore)}
    found = metastore.clusters.standing()
    states = Counter(STATES[-1] if each.instance in red else each.state for each in found)
    return {state: states[state] for state in STATES}


class _Fleet(Collector):
    def __init__(self, seen: Sequence[Seen], clusters: Mapping[str, int]) -> None:
        self._seen = seen
        self._clusters = clusters

    def collect(self) -> Iterable[Metric]:
        help = "Clusters of kind commands that are recorded, by state."
        standing = GaugeMetricFamily(CLUSTERS, help, labels=["state"])
        for state, count in self._clusters.items():
            standing.add_metric([state], count)
        yield standing
        for family in FAMILIES:
            kind = CounterMetricFamily if family.counts else GaugeMetricFamily
            metric = kind(family.name, family.help, labels=["pipeline", *family.labels])
            for seen in self._seen:
                for labels, value in family.of(seen):
                    metric.add_metric([seen.pipeline, *labels], value)
            yield metric


def metrics_text(seen: Sequence[Seen], clusters: Mapping[str, int]) -> bytes:
    """Return the metrics of these pipelines, and of clusters by state, as text of CONTENT_TYPE."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Fleet(seen, clusters))
    return generate_latest(registry)
