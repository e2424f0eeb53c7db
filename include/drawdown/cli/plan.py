"""`drawdown plan`: what the next run of a pipeline would refuse, change, keep in state and read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from drawdown.cli.screen import children_write_to, out, print_json, working
from drawdown.errors import RefusedError

if TYPE_CHECKING:
    from rich.table import Table

    from drawdown.engine.planning import PipelinePlan
    from drawdown.metastore import Metastore
    from drawdown.metastore.records import Checkpoint
    from drawdown.plan.preflight import Preflight
    from drawdown.plan.verdicts import PlanVerdict
    from drawdown.spec import Pipeline, Project

_RUNS_LOOKED_AT = 10
_STREAMING = "spark.sql.streaming."
_COLOURS = {"refused": "bold red", "warning": "yellow", "allowed": "green", "note": "dim"}


class Form(StrEnum):
    """How the plan is written."""

    text = "text"
    json = "json"
    markdown = "markdown"


def plan(
    name: Annotated[str, typer.Argument(metavar="PIPELINE", show_default=False)],
    form: Annotated[Form, typer.Option("--format", help="markdown: a page for a pull request.")] = Form.text,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
) -> None:
    """Say what the next run would refuse, warn of, change, keep in state and read; touches nothing.

    For CI: ends with 0 when a run would start, with 3 when something is refused, with 2 when the folder is
    not a pipeline. What Spark prints goes to .drawdown/logs/spark.log.
    """
    from drawdown.metastore import Metastore
    from drawdown.metastore.runs import REBUILD
    from drawdown.plan.drain_fit import drain_fit
    from drawdown.plan.preflight import preflight
    from drawdown.plan.rebuild import in_use
    from drawdown.plan.state_size import state_size
    from drawdown.spec import load_pipeline, load_project
    from drawdown.storage import Storage

    project = load_project()
    pipeline = load_pipeline(project, name)
    with Metastore.open(project.metastore_url) as metastore:
        pipeline = in_use(project, metastore, pipeline)
        found = _planned(project, pipeline, metastore)
        waiting = preflight(project, pipeline, metastore)
        found_runs = metastore.runs(pipeline.name, limit=_RUNS_LOOKED_AT)
    # Batches of a rebuild are of other sizes.
    runs = [run for run in found_runs if run.kind != REBUILD]
    state = state_size(Storage(project.storage_root), found.checkpoint, runs)
    values = {
        **_values(found, waiting),
        "state": state and asdict(state),
        "fit": asdict(drain_fit(pipeline, waiting.backlog, runs)),
    }
    if as_json or form is Form.json:
        print_json(values)
    elif form is Form.markdown:
        from drawdown.cli.plan_markdown import plan_markdown

        print(plan_markdown(values, _amounts(waiting)), end="")
    else:
        _show(found, waiting, values)
    raise typer.Exit(RefusedError.exit_code if found.errors else 0)


def _planned(project: Project, pipeline: Pipeline, metastore: Metastore) -> PipelinePlan:
    from drawdown.clusters.local import submit_conf
    from drawdown.credentials import collect
    from drawdown.engine.planning import plan_pipeline
    from drawdown.engine.session import application_session

    project = collect(project, [pipeline])
    with children_write_to(project.state_dir / "logs" / "spark.log"), working("analysing the query"):
        session = application_session(
            f"drawdown plan {pipeline.name}", submit_conf(project, project.clusters[pipeline.cluster])
        )
        try:
            return plan_pipeline(session, project, pipeline, metastore)
        finally:
            session.stop()


def _values(found: PipelinePlan, waiting: Preflight) -> dict[str, Any]:
    return {
        "pipeline": found.pipeline.name,
        "generation": found.checkpoint and found.checkpoint.generation,
        "verdicts": [vars(verdict) for verdict in found.verdicts],
        "operators": [vars(operator) for operator in (found.query.operators if found.query else ())],
        "reads": waiting.backlog,
        "why": waiting.reasons,
        "versions": found.fingerprint.get("versions"),
        "checkpoint": found.checkpoint and found.checkpoint.fingerprint,
    }


def _show(found: PipelinePlan, waiting: Preflight, values: Mapping[str, Any]) -> None:
    from drawdown.cli.plan_markdown import state_sentence

    if found.verdicts:
        out().print(_verdict_table(found.verdicts))
    else:
        out().print("nothing is refused, and there is nothing to warn of")
    if found.checkpoint is not None:
        out().print(_noted(found.checkpoint), markup=False)
    if found.query is not None and found.query.operators:
        out().print(_operator_table(found))
        out().print(f"state: {state_sentence(values['state'])}", markup=False)
    out().print(_source_table(waiting))
    fits = {"yes": "fits one drain", "no": "does not fit one drain", "unknown": "may fit one drain"}
    out().print(f"{fits[values['fit']['fits']]}: {values['fit']['why']}", markup=False)
    for reason in waiting.reasons or ["there is nothing for a run to do"]:
        out().print(f"- {reason}", markup=False)


def _noted(checkpoint: Checkpoint) -> str:
    """The versions that the checkpoint's last batch was written with, and the formats of its state."""
    versions = checkpoint.fingerprint.get("versions", {})
    formats = checkpoint.fingerprint.get("state.formats", {})
    written = ", ".join(f"{name} {version}" for name, version in versions.items()) or "unknown versions"
    kept = ", ".join(f"{key.removeprefix(_STREAMING)}={value}" for key, value in sorted(formats.items()))
    return f"checkpoint: generation {checkpoint.generation}, written with {written}" + (
        f"; fixed in it: {kept}" if kept else ""
    )


def _verdict_table(verdicts: tuple[PlanVerdict, ...]) -> Table:
    from rich.text import Text

    table = _table("verdict", "id", "about", "what", "do")
    for each in verdicts:
        table.add_row(
            Text(each.level, _COLOURS[each.level]), *map(Text, (each.id, each.about, each.what, each.do))
        )
    return table


def _operator_table(found: PipelinePlan) -> Table:
    from rich.text import Text

    table = _table("stateful operator", "keeps", "written as")
    for each in found.query.operators if found.query else ():
        table.add_row(*map(Text, (each.name, each.keeps, each.written)))
    return table


def _source_table(waiting: Preflight) -> Table:
    from rich.text import Text

    table = _table("source", "a run would read")
    for name, amount in _amounts(waiting).items():
        table.add_row(Text(name), Text(amount))
    return table


def _amounts(waiting: Preflight) -> dict[str, str]:
    """By source what a run would read, in words."""
    said = {
        name: ", ".join(f"{_amount(value)} {unit}" for unit, value in backlog.items())
        for name, backlog in waiting.backlog.items()
    }
    return {name: text or "nobody can count it" for name, text in said.items()}


def _amount(value: Any) -> str:
    if isinstance(value, dict):
        return " + ".join(f"{count:,} of {part}" for part, count in value.items()) or "0"
    return f"{value:,}"


def _table(*columns: str) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    return table
