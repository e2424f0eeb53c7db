"""`drawdown plan`: shows what the next run of a pipeline would refuse, change, keep in state and read."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from drawdown.cli.arguments import Name
from drawdown.cli.envelope import request
from drawdown.cli.screen import out, print_json, print_text
from drawdown.cli.session import own_session
from drawdown.cli.shown.plan import plan_parts
from drawdown.credentials import collect
from drawdown.errors import RefusedError
from drawdown.spec import load_pipeline, load_project

if TYPE_CHECKING:
    from drawdown.application.plan import Plan


class Form(StrEnum):
    """Output format of the plan."""

    text = "text"
    json = "json"
    markdown = "markdown"


def plan(
    name: Name,
    form: Annotated[Form, typer.Option("--format", help="markdown: a page for a pull request.")] = Form.text,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
    verbose: Annotated[
        bool,
        typer.Option("--verbose", help="Also notes, allowed changes, the state and the reasons."),
    ] = False,
) -> None:
    """Show what the next run would refuse, warn about, change, keep in state and read; changes nothing.

    Exit codes for CI: 0 when a run would start, 3 when something is refused, 2 when the folder is not a
    pipeline. Spark's output goes to .drawdown/logs/spark.log.
    """
    from drawdown.application.plan import plan as look
    from drawdown.launch.sizing import with_size
    from drawdown.plan.version_in_use import in_use
    from drawdown.static_checks.check import static_errors
    from drawdown.workspace import Workspace

    request.as_json |= form is Form.json
    project = load_project()
    pipeline = load_pipeline(project, name)
    with Workspace.open(project) as workspace:
        pipeline = in_use(workspace, pipeline)
        if error := static_errors(project, [pipeline]).get(pipeline.name):
            raise error
        known = collect(project, [pipeline])
        with own_session(known, pipeline, "plan", "analysing the query") as session:
            known_workspace = replace(workspace, project=known)
            found = with_size(known_workspace, pipeline, look(session, known_workspace, pipeline))
    if as_json or form is Form.json:
        print_json(found.as_dict())
    elif form is Form.markdown:
        from drawdown.cli.shown.plan import amounts
        from drawdown.cli.shown.plan_markdown import plan_markdown

        print_text(plan_markdown(found.as_dict(), amounts(found.waiting)))
    else:
        _show(found, verbose=verbose)
    raise typer.Exit(RefusedError.exit_code if found.refused else 0)


def _show(found: Plan, *, verbose: bool) -> None:
    for part in plan_parts(found, verbose=verbose):
        out().print(part)
