"""`drawdown runs`: lists what runs read, quarantined and published; `drawdown runs NAME --id RUN` shows
one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from drawdown.cli.arguments import Json, SomeName, Wide
from drawdown.cli.chosen import require_known
from drawdown.cli.screen import out, print_json, print_text
from drawdown.errors import SpecError
from drawdown.spec import load_project, pipeline_names

if TYPE_CHECKING:
    from drawdown.workspace import Workspace


def runs(
    name: SomeName = None,
    run_id: Annotated[str | None, typer.Option("--id", help="One run, in full.", show_default=False)] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Maximum number of runs, newest first.")] = 20,
    wide: Wide = False,
    as_json: Json = False,
    prometheus: Annotated[
        bool,
        typer.Option("--prometheus", help="Print the newest drain of each pipeline as Prometheus gauges."),
    ] = False,
) -> None:
    """List runs, newest first, followed by the errors of failed runs and the warnings of others."""
    from rich.markup import escape

    from drawdown.cli.shown.runs import run_table, run_values
    from drawdown.cli.shown.sparkline import rows_read, sparkline
    from drawdown.held.deadlines import terms
    from drawdown.held.decide import Choice, decision_text
    from drawdown.workspace import Workspace

    project = load_project()
    with Workspace.open(project) as workspace:
        if name is not None:
            require_known(workspace, name)
        if prometheus:
            return _show_gauges(workspace, name)
        if run_id is not None:
            return _show_one(workspace, run_id, wide=wide, as_json=as_json)
        found = workspace.metastore.runs(name, limit=limit)
        shown = [name] if name is not None else list(dict.fromkeys(run.pipeline for run in found))
        waiting = [term for each in shown for term in terms(workspace, each)]
    if as_json:
        return print_json([run_values(run) for run in found])
    if name is not None and found:
        out().print(f"rows read, oldest first: {sparkline(rows_read(found))}", markup=False)
    if found:
        out().print(run_table([(run.pipeline, run) for run in found], name=name is None, wide=wide))
    else:
        who = "no pipeline has run yet" if name is None else f"{name} has not run yet"
        out().print(f"{who}: drawdown run {name or 'NAME'}", markup=False)
    for run in found:
        for notice in run.notices:
            out().print(f"{run.run_id} {notice['id']}: {notice['what']}", markup=False)
        if run.error:
            out().print(f"[red]{run.run_id}[/] {escape(_first_line(run.error))}")
        if run.kind in get_args(Choice) and run.state == "succeeded":
            out().print(f"{run.run_id} {decision_text(run)}", markup=False)
    for term in waiting:
        mark = "[red]held[/]" if term.over else "[yellow]held[/]"
        out().print(f"{mark} {escape(f'{term.held.verdict.pipeline}: {term.text}: {term.do}')}")
        for line in term.held.verdict.text.splitlines()[1:]:
            out().print(line, markup=False)
    return None


def _first_line(error: Mapping[str, str]) -> str:
    return f"{error['id']}: {error['what'].splitlines()[0]}"


def _show_gauges(workspace: Workspace, name: str | None) -> None:
    from drawdown.cli.shown.prometheus import exposition

    names = pipeline_names(workspace.project) if name is None else [name]
    found = [workspace.metastore.newest(each) for each in names]
    print_text(exposition([each for each in found if each is not None]))


def _show_one(workspace: Workspace, run_id: str, *, wide: bool, as_json: bool) -> None:
    from drawdown.cli.shown.cost import usage_sentence
    from drawdown.cli.shown.runs import progress_table, run_table, run_values
    from drawdown.held.deadlines import terms
    from drawdown.held.decide import decisions_on

    metastore = workspace.metastore
    run = metastore.run(run_id)
    if run is None:
        raise SpecError("cli.no-run", f"there is no run {run_id}", do="`drawdown runs` lists them")
    verdicts = metastore.verdicts_of(run)
    if as_json:
        return print_json({**run_values(run), "verdicts": [asdict(verdict) for verdict in verdicts]})
    out().print(run_table([(run.pipeline, run)], wide=wide))
    if run.usage is not None:
        out().print(usage_sentence(run.usage), markup=False)
    if run.progress:
        out().print(progress_table(run))
    for verdict in verdicts:
        # The error of an audit that failed has the verdict in it.
        if run.error is None or verdict.text not in run.error["what"]:
            out().print(verdict.text, markup=False)
    for notice in run.notices:
        out().print(f"{notice['id']}: {notice['what']}\n  do:    {notice['do']}", markup=False)
    for key, text in (run.error or {}).items():
        out().print(f"{key + ':':<7}{text}", markup=False)
    for term in terms(workspace, run.pipeline):
        if term.held.verdict.run_id == run.run_id:
            out().print(f"held: {term.text}: {term.do}", markup=False)
    for decided in decisions_on(metastore, run):
        out().print(f"decided: {decided}", markup=False)
    if run.origin:
        out().print("origin:", ", ".join(f"{k}={v}" for k, v in run.origin.items() if v), markup=False)
    return None
