"""Great Expectations' Spark engine, changed to compute all aggregates of an audit in one pass.

The original resolves metrics in rounds, as they become ready; each round and each kind of filter is a Spark
job. This one defers whatever needs a job until nothing else is ready, then computes together aggregates of
columns, counts of unexpected rows (of one column, of pairs and of lists of columns, under a ``row_condition``
too), and whether a column has no value twice. The values equal those of Great Expectations' own jobs, and it
still judges them. Other metrics (quantiles, sets of distinct values, SQL) are computed by the original
engine, and so is everything if the one pass fails: its error then names the failing expectation.

Import it after :func:`drawdown.quality.gx_import.load`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import and_
from typing import Any

from great_expectations.core.metric_function_types import MetricPartialFunctionTypeSuffixes
from great_expectations.exceptions.exceptions import GreatExpectationsError
from great_expectations.execution_engine.sparkdf_execution_engine import SparkDFExecutionEngine
from great_expectations.expectations.registry import get_metric_provider
from great_expectations.util import convert_to_json_serializable
from great_expectations.validator.metric_configuration import MetricConfiguration
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from drawdown.spark.sql_checks import refused_in_condition
from drawdown.spark.sql_gate import asks_a_query

_NEED_NO_JOB = frozenset({"table.columns", "table.column_types", "table.column_count"})
_PARTS = frozenset(suffix.value for suffix in MetricPartialFunctionTypeSuffixes)
_COUNT = ".unexpected_count"
_FILTERED = ".filtered_row_count"
_UNIQUE = frozenset({"column_values.unique", "compound_columns.unique"})
# ignore_row_if for pairs and lists of columns: how their NULL checks combine.
_MISSING = {
    "both_values_are_missing": and_,
    "all_values_are_missing": and_,
    "either_value_is_missing": lambda a, b: a | b,
    "any_value_is_missing": lambda a, b: a | b,
}
_NONE_MISSING = ("neither", "never")


class OnePassEngine(SparkDFExecutionEngine):
    """See the module docstring.

    Args:
        slice: the rows to judge.
        rows: how many rows it has; None if a job has to count them.
    """

    def __init__(self, slice: DataFrame, rows: int | None) -> None:
        # persist would cache the slice and never release it. The query's own session: SQL expectations would
        # not find the slice's view in the root session.
        super().__init__(spark=slice.sparkSession, persist=False)
        self._rows = rows
        self._taken: dict[Any, Any] = {}
        self._not_unique: set[Any] = set()

    def resolve_metrics(
        self,
        metrics_to_resolve: Iterable[MetricConfiguration],
        metrics: dict[Any, Any] | None = None,
        runtime_configuration: dict[str, Any] | None = None,
    ) -> dict[Any, Any]:
        """Return the values of some of the metrics; the caller asks again for the rest."""
        ready = list(metrics_to_resolve)
        so_far = metrics or {}
        if known := self._known(ready):
            return known
        asked = [metric for metric in ready if _needs_no_job(metric)]
        if not asked:
            if taken := self._take(ready, so_far):
                return taken
            asked = ready
        values: dict[Any, Any] = super().resolve_metrics(asked, so_far, runtime_configuration)
        return values

    def _known(self, ready: list[MetricConfiguration]) -> dict[Any, Any]:
        """Return the values that need no rows, or are known from another validation of the same slice."""
        known = {metric.id: self._taken[metric.id] for metric in ready if metric.id in self._taken}
        if self._rows is not None:
            for metric in ready:
                if metric.metric_name == "table.row_count" and not _row_condition(
                    metric.metric_domain_kwargs
                ):
                    known[metric.id] = self._rows
        return known

    def _take(self, ready: list[MetricConfiguration], metrics: dict[Any, Any]) -> dict[Any, Any]:
        """Compute all metrics that have an aggregate in one Spark job; empty if there are none or it
        failed."""
        try:
            # Always in the same order: Spark caches compiled aggregates by their text.
            ordered = sorted(ready, key=lambda metric: str(metric.id))
            columns = {metric.id: self._aggregate(metric, metrics) for metric in ordered}
            asked = {id: column for id, column in columns.items() if column is not None}
            if not asked:
                return {}
            (row,) = self.dataframe.agg(*asked.values()).collect()
        except (PySparkException, Py4JError, GreatExpectationsError):
            return {}
        taken = {id: convert_to_json_serializable(data=row[at]) for at, id in enumerate(asked)}
        for metric in ready:
            if _is_unique(metric) and taken.get(metric.id):
                # This does not tell how many rows share their value: left to Great Expectations.
                self._not_unique.add(metric.id)
                del taken[metric.id]
        self._taken |= taken
        return taken

    def _aggregate(self, metric: MetricConfiguration, metrics: dict[Any, Any]) -> Column | None:
        """Return the metric as an aggregate over the slice; None if it must be computed separately."""
        _, provider = get_metric_provider(metric.metric_name, self)
        parts = self._get_computed_metric_evaluation_dependencies_by_metric_name(metric, metrics)
        if provider is None:
            return self._bundled(metric, parts["metric_partial_fn"], metrics)
        if "unexpected_condition" not in parts:
            return None
        condition, compute, accessor = parts["unexpected_condition"]
        domain = {**compute, **accessor}
        if _is_unique(metric):
            return None if metric.id in self._not_unique else self._repeated(domain)
        if "column" in domain:
            # Computed separately only if the condition is a window.
            return None
        if metric.metric_name.endswith(_FILTERED):
            return F.count(self._within(domain, F.lit(1)))
        if metric.metric_name.endswith(_COUNT):
            return F.count(self._within(domain, F.when(condition, 1)))
        return None

    def _bundled(self, metric: MetricConfiguration, part: Any, metrics: dict[Any, Any]) -> Column | None:
        """Return a metric that Great Expectations also aggregates, but in one job per filter."""
        aggregate, domain, _ = part
        if self._filter(domain) is None:
            return aggregate  # type: ignore[no-any-return]
        if metric.metric_name == "table.row_count":
            return F.count(self._within(domain, F.lit(1)))
        if metric.metric_name.endswith(_COUNT):
            of = metric.metric_dependencies["metric_partial_fn"].metric_dependencies["unexpected_condition"]
            condition = metrics[of.id][0]
            # NULL if the filter leaves no row, like a sum over no rows.
            return F.sum(self._within(domain, F.when(condition, 1).otherwise(0)))
        return None

    def _repeated(self, domain: dict[str, Any]) -> Column:
        """Return the count of values minus distinct values: 0 when all are unique."""
        names = [domain["column"]] if "column" in domain else domain["column_list"]
        value = self._within(domain, F.col(names[0]) if "column" in domain else F.struct(*names))
        return F.count(value) - F.count_distinct(value)

    def _within(self, domain: dict[str, Any], value: Column) -> Column:
        """Return the value in rows of the domain; NULL (and not computed) elsewhere."""
        within = self._filter(domain)
        return value if within is None else F.when(within, value)

    def _apply_row_condition_filter(
        self, data: DataFrame, row_condition: Any, domain_kwargs: dict[str, Any]
    ) -> DataFrame:
        """Filter like Great Expectations, but refuse conditions with a subquery."""
        seen = _Filters(data)
        super()._apply_row_condition_filter(seen, row_condition, domain_kwargs)  # type: ignore[arg-type]
        return reduce(DataFrame.filter, seen.conditions, data)

    def _filter(self, domain: dict[str, Any]) -> Column | None:
        """Return the filter of ``get_domain_records``; None if it takes all rows."""
        seen = _Filters(self.dataframe)
        if condition := _row_condition(domain):
            super()._apply_row_condition_filter(seen, condition, domain)  # type: ignore[arg-type]
        if conditions := domain.get("filter_conditions"):
            seen.filter(self._combine_row_conditions(conditions).condition)
        ignore = domain.get("ignore_row_if")
        if ignore and ignore not in _NONE_MISSING and "column" not in domain:
            names = domain.get("column_list") or [domain["column_A"], domain["column_B"]]
            seen.filter(~reduce(_MISSING[ignore], [F.col(name).isNull() for name in names]))
        return reduce(and_, seen.conditions) if seen.conditions else None


class _Filters:
    """Stands in for a DataFrame and records its filters.

    Great Expectations turns a ``row_condition`` into SQL in several ways; all end here.
    """

    def __init__(self, frame: DataFrame) -> None:
        self.schema = frame.schema
        self.conditions: list[Column] = []
        self._session = frame.sparkSession

    def filter(self, condition: Column | str) -> _Filters:
        """Record a filter; raises GreatExpectationsError if the condition contains a subquery, or
        calls what is on no list."""
        if isinstance(condition, str):
            if asks_a_query(self._session, condition):
                raise GreatExpectationsError(f"the row_condition contains a subquery: {condition}")
            if refusal := refused_in_condition(self._session, condition):
                raise GreatExpectationsError(f"the row_condition {refusal.what}: {condition}")
            condition = F.expr(condition)
        self.conditions.append(condition)
        return self


def _needs_no_job(metric: MetricConfiguration) -> bool:
    """Whether the metric is a schema fact or a part that aggregates are built from."""
    name = metric.metric_name
    return name in _NEED_NO_JOB or name.rpartition(".")[2] in _PARTS


def _is_unique(metric: MetricConfiguration) -> bool:
    name, _, what = metric.metric_name.rpartition(".")
    return name in _UNIQUE and f".{what}" == _COUNT


def _row_condition(domain: dict[str, Any]) -> Any:
    return domain.get("row_condition")
