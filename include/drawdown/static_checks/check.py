"""All checks of one pipeline, in the order in which a user would fix what they find."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from drawdown.errors import SpecError
from drawdown.spec import Pipeline, Project
from drawdown.spec.loader import refusal_beside_others
from drawdown.static_checks.judged_columns import check_judged_columns
from drawdown.static_checks.landing_folders import check_landing_folders
from drawdown.static_checks.places import Places
from drawdown.static_checks.quality import check_queries, check_row_conditions, check_rules
from drawdown.static_checks.schemas import check_schemas, check_watermarks
from drawdown.static_checks.sources import declared, known_sources
from drawdown.static_checks.transform import check_transform, output_of

_SHOWN = 10


def static_errors(project: Project, pipelines: Sequence[Pipeline]) -> dict[str, SpecError]:
    """Return by name what is wrong with pipelines that are about to run, of a project whose others stay as
    they are."""
    found = {
        each.name: refusal_beside_others(project, each.name) or static_error(project, each)
        for each in pipelines
    }
    return {name: error for name, error in found.items() if error is not None}


def static_error(project: Project, pipeline: Pipeline) -> SpecError | None:
    """What is wrong with a pipeline: the first mistake with its id and step, the others a line each."""
    found = list(_checks(project, pipeline))
    if not found:
        return None
    first, others = found[0], found[1:]
    lines = [first.what] + [f"  also {each.where}: {each.what}" for each in others[:_SHOWN]]
    if len(others) > _SHOWN:
        lines.append(f"  and {len(others) - _SHOWN} more")
    return SpecError(first.id, "\n".join(lines), where=first.where, do=first.do)


def _checks(project: Project, pipeline: Pipeline) -> Iterator[SpecError]:
    places = Places(pipeline)
    yield from check_landing_folders(project, pipeline, places)
    yield from check_schemas(pipeline, places)
    known = known_sources(project, pipeline)
    rows = declared(pipeline.sink.schema_ddl)
    rows = rows if rows.whole else output_of(pipeline, known)
    yield from check_watermarks(pipeline, known, places)
    yield from check_rules(pipeline, known, places)
    yield from check_transform(pipeline, known, places)
    yield from check_judged_columns(pipeline, rows, places)
    yield from check_row_conditions(pipeline, rows, places)
    yield from check_queries(pipeline, known, rows, places)
