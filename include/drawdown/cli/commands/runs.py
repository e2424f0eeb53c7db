"""`drawdown runs`: what runs read, set aside and published; `drawdown runs NAME --id RUN` one in full."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from drawdown.cli.screen import out, print_json, print_text
from drawdown.errors import SpecError

if TYPE_CHECKING:
    from drawdown.metastore import Metastore
    from drawdown.workspace import Workspace


def runs(
    name: Annotated[str | None, typer.Argument(help="Only this pipeline's.", show_default=False)] = None,
    run_id: Annotated[str | None, typer.Option("--id", help="One run, in full.", show_default=False)] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="At most so many, newest first.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")] = False,
    prometheus: Annotated[
        bool, typer.Option("--prometheus", help="The newest drain of each pipeline as gauges.")
    ] = False,
) -> None:
    """List runs, newest first; below, errors of failed ones and what a person should know of others."""
    from drawdown.cli.shown.runs import run_table, run_values
    from drawdown.held.deadlines import terms
    from drawdown.spec import load_project
    from drawdown.workspace import Workspace

    project = load_project()
    with Workspace.open(project) as workspace:
        if prometheus:
            return _show_gauges(workspace, name)
        if run_id is not None:
            return _show_one(workspace.metastore, run_id, as_json)
        found = workspace.metastore.runs(name, limit=limit)
        shown = [name] if name is not None else list(dict.fromkeys(run.pipeline for run in found))
        waiting = [term for each in shown for term in terms(workspace, each)]
    if as_json:
        return print_json([run_values(run) for run in found])
    out().print(run_table([(run.pipeline, run) for run in found], ids=True))
    for run in found:
        for notice in run.notices:
            out().print(f"{run.run_id} {notice['id']}: {notice['what']}", markup=False)
        if run.error:
            out().print(f"[red]{run.run_id}[/] ", end="")
            out().print(f"{run.error['id']}: {run.error['what'].splitlines()[0]}", markup=False)
    for term in waiting:
        out().print("[red]held[/] " if term.over else "[yellow]held[/] ", end="")
        out().print(f"{term.held.verdict.pipeline}: {term.text}: {term.do}", markup=False)
        for line in term.held.verdict.text.splitlines()[1:]:
            out().print(line, markup=False)
    return None


def _show_gauges(workspace: Workspace, name: str | None) -> None:
    from drawdown.cli.shown.prometheus import exposition
    from drawdown.spec import pipeline_names

    names = pipeline_names(workspace.project) if name is None else [name]
    found = [workspace.metastore.newest(each) for each in names]
    print_text(exposition([each for each in found if each is not None]))


def _show_one(metastore: Metastore, run_id: str, as_json: bool) -> None:
    from drawdown.cli.shown.cost import usage_sentence
    from drawdown.cli.shown.runs import progress_table, run_table, run_values

    run = metastore.run(run_id)
    if run is None:
        raise SpecError("cli.no-run", f"there is no run {run_id}", do="`drawdown runs` lists them")
    verdicts = metastore.verdicts_of(run)
    if as_json:
        return print_json({**run_values(run), "verdicts": [asdict(verdict) for verdict in verdicts]})
    out().print(run_table([(run.pipeline, run)], ids=True))
    if run.usage is not None:
        out().print(usage_sentence(run.usage), markup=False)
    if run.progress:
        out().print(progress_table(run))
    for verdict in verdicts:
        out().print(verdict.text, markup=False)
    for notice in run.notices:
        out().print(f"{notice['id']}: {notice['what']}\n  do:    {notice['do']}", markup=False)
    for key, text in (run.error or {}).items():
        out().print(f"{key + ':':<7}{text}", markup=False)
    if run.origin:
        out().print("origin:", ", ".join(f"{k}={v}" for k, v in run.origin.items() if v), markup=False)
    return None
