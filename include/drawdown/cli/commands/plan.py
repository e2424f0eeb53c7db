"""`drawdown plan`: what the next run of a pipeline would refuse, change, keep in state and read."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from drawdown.cli.screen import out, print_json, print_text
from drawdown.errors import RefusedError

if TYPE_CHECKING:
    from rich.table import Table

    from drawdown.application.plan import Plan
    from drawdown.metastore.records import Checkpoint
    from drawdown.plan.preflight import Preflight
    from drawdown.query.state.operators import Operator
    from drawdown.verdicts import PlanVerdict

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
    from drawdown.application.plan import plan as look
    from drawdown.cli.session import own_session
    from drawdown.credentials import collect
    from drawdown.plan.version_in_use import in_use
    from drawdown.spec import load_pipeline, load_project
    from drawdown.workspace import Workspace

    project = load_project()
    pipeline = load_pipeline(project, name)
    with Workspace.open(project) as workspace:
        pipeline = in_use(workspace, pipeline)
        known = collect(project, [pipeline])
        with own_session(known, pipeline, "plan", "analysing the query") as session:
            found = look(session, replace(workspace, project=known), pipeline)
    if as_json or form is Form.json:
        print_json(found.as_dict())
    elif form is Form.markdown:
        from drawdown.cli.shown.plan_markdown import plan_markdown

        print_text(plan_markdown(found.as_dict(), _amounts(found.waiting)))
    else:
        _show(found)
    raise typer.Exit(RefusedError.exit_code if found.refused else 0)


def _show(found: Plan) -> None:
    from drawdown.cli.shown.plan_markdown import state_sentence

    if found.verdicts:
        out().print(_verdict_table(found.verdicts))
    else:
        out().print("nothing is refused, and there is nothing to warn of")
    if found.checkpoint is not None:
        out().print(_noted(found.checkpoint), markup=False)
    if found.operators:
        out().print(_operator_table(found.operators))
        out().print(f"state: {state_sentence(found.as_dict()['state'])}", markup=False)
    out().print(_source_table(found.waiting))
    fits = {"yes": "fits one drain", "no": "does not fit one drain", "unknown": "may fit one drain"}
    out().print(f"{fits[found.fit.fits]}: {found.fit.why}", markup=False)
    for reason in found.waiting.reasons or ["there is nothing for a run to do"]:
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


def _operator_table(operators: tuple[Operator, ...]) -> Table:
    from rich.text import Text

    table = _table("stateful operator", "keeps", "written as")
    for each in operators:
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
    return {name: text or "unknown" for name, text in said.items()}


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
