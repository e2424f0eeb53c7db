"""All checks of one pipeline, in the order in which a user would fix what they find."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from drawdown.errors import SpecError
from drawdown.spec import LocalCluster, Pipeline, Project, StandaloneCluster, iter_pipelines
from drawdown.spec.loader import refusal_beside_others
from drawdown.static_checks.judged_columns import check_judged_columns
from drawdown.static_checks.landing_folders import check_landing_folders
from drawdown.static_checks.places import Places
from drawdown.static_checks.quality import check_queries, check_row_conditions, check_rules
from drawdown.static_checks.schemas import check_schemas, check_watermarks
from drawdown.static_checks.sources import declared, known_sources
from drawdown.static_checks.transform import check_transform, output_of

_SHOWN = 10
# Settings of a cluster by which Spark's catalog may know tables that no spec names.
_CATALOGS = (
    "spark.sql.catalogImplementation",
    "spark.sql.catalog.",
    "spark.hadoop.hive.",
    "spark.sql.defaultCatalog",
)


def tables_of(pipelines: Iterable[Pipeline | SpecError]) -> frozenset[str]:
    """Return the names that the sinks of a project's pipelines give their tables."""
    loaded = (each for each in pipelines if not isinstance(each, SpecError))
    return frozenset(each.sink.table.lower() for each in loaded if each.sink.table is not None)


def static_errors(project: Project, pipelines: Sequence[Pipeline]) -> dict[str, SpecError]:
    """Return by name what is wrong with pipelines that are about to run, of a project whose others stay as
    they are."""
    tables = tables_of(iter_pipelines(project))
    found = {
        each.name: refusal_beside_others(project, each.name) or static_error(project, each, tables)
        for each in pipelines
    }
    return {name: error for name, error in found.items() if error is not None}


def static_error(project: Project, pipeline: Pipeline, tables: frozenset[str]) -> SpecError | None:
    """What is wrong with a pipeline: the first mistake with its id and step, the others a line each.

    Args:
        tables: see `tables_of`.
    """
    found = list(_checks(project, pipeline, tables))
    if not found:
        return None
    first, others = found[0], found[1:]
    lines = [first.what] + [f"  also {each.where}: {each.what}" for each in others[:_SHOWN]]
    if len(others) > _SHOWN:
        lines.append(f"  and {len(others) - _SHOWN} more")
    return SpecError(first.id, "\n".join(lines), where=first.where, do=first.do)


def _checks(project: Project, pipeline: Pipeline, tables: frozenset[str]) -> Iterator[SpecError]:
    places = Places(pipeline)
    yield from check_landing_folders(project, pipeline, places)
    yield from check_schemas(pipeline, places)
    known = known_sources(project, pipeline)
    rows = declared(pipeline.sink.schema_ddl)
    rows = rows if rows.whole else output_of(pipeline, known)
    yield from check_watermarks(pipeline, known, places)
    yield from check_rules(pipeline, known, places)
    yield from check_transform(pipeline, known, _catalog(project, pipeline, tables), places)
    yield from check_judged_columns(pipeline, rows, places)
    yield from check_row_conditions(pipeline, rows, places)
    yield from check_queries(pipeline, known, rows, places)


def _catalog(project: Project, pipeline: Pipeline, tables: frozenset[str]) -> frozenset[str] | None:
    """The tables that Spark's catalog may know; None where the cluster may have a catalog of its own."""
    cluster = project.clusters[pipeline.cluster]
    if not isinstance(cluster, LocalCluster | StandaloneCluster):
        return None
    return None if any(key.startswith(_CATALOGS) for key in cluster.conf) else tables
