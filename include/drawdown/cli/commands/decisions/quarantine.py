"""`drawdown quarantine`: list and show quarantined rows, replay those that pass now, drop the rest; files."""

from __future__ import annotations

import getpass
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from drawdown.cli.application import in_application
from drawdown.cli.arguments import By, Json, MaybeWhy, Name, Why
from drawdown.cli.command import Commands
from drawdown.cli.confirm import confirm
from drawdown.cli.screen import out, print_json
from drawdown.cli.session import own_session
from drawdown.cli.shown.quarantine import counts_table, row_lines, total_line
from drawdown.credentials import collect
from drawdown.errors import SpecError
from drawdown.spec import load_pipeline, load_project
from drawdown.values.nearest import did_you_mean
from drawdown.values.text import counted

if TYPE_CHECKING:
    from drawdown.application.watcher import Report
    from drawdown.quarantine.request import ReplayRequest
    from drawdown.quarantine.row_states import Choice, SetAside
    from drawdown.spec import Pipeline
    from drawdown.workspace import Workspace

app = Commands(
    help="Quarantined rows: list, show, replay those that pass now, drop the rest; set a whole file aside.",
    no_args_is_help=True,
)
Rules = Annotated[
    list[str] | None,
    typer.Option(
        "--rule", help="Only rows with this reason: a rule's name, malformed, future, drift, late.",
        show_default=False,
    ),
]  # fmt: skip
Batches = Annotated[
    list[int] | None, typer.Option("--batch", help="Only rows of this batch.", show_default=False)
]
Files = Annotated[
    list[str] | None,
    typer.Option(
        "--file", help="Only rows of this file: its path, or the end of the path.", show_default=False
    ),
]
States = Annotated[
    list[str] | None,
    typer.Option(
        "--state", help="Only rows in this state, for example open or replayed.", show_default=False
    ),
]


@app.command("list")
def list_rows(
    name: Name, rules: Rules = None, batches: Batches = None, files: Files = None, as_json: Json = False
) -> None:
    """Count quarantined rows per rule, batch, day and state. Needs no Spark."""
    from drawdown.quarantine.row_states import counted, counts, totals
    from drawdown.workspace import Workspace

    project = load_project()
    pipeline = load_pipeline(project, name)
    with Workspace.open(project) as workspace:
        found = counted(workspace, pipeline, _choice(rules, batches, files))
    total = totals(found)
    if as_json:
        return print_json({"pipeline": name, "rows": total, "counts": counts(found)})
    if found:
        out().print(counts_table(counts(found)))
    out().print(total_line(sum(total.values()), total), markup=False)
    return None


@app.command()
def show(
    name: Name,
    rules: Rules = None,
    batches: Batches = None,
    files: Files = None,
    states: States = None,
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="Maximum number of rows.")] = 20,
    as_json: Json = False,
) -> None:
    """Show quarantined rows: the reason, the origin and the original record. Needs no Spark."""
    rows = _rows(name, _choice(rules, batches, files, states))
    if as_json:
        return print_json([row.values for row in rows[:limit]])
    for row in rows[:limit]:
        out().print(row_lines(row), soft_wrap=True)
    if len(rows) > limit:
        out().print(f"{len(rows) - limit:,} more: --limit, or fewer by --rule, --batch, --file, --state")
    elif not rows:
        out().print("No rows match.")
    return None


@app.command()
def replay(
    name: Name,
    rules: Rules = None,
    batches: Batches = None,
    files: Files = None,
    patch: Annotated[
        list[str] | None,
        typer.Option("--set", help="column = SQL expression over the row's columns.", show_default=False),
    ] = None,
    with_late: Annotated[
        bool,
        typer.Option("--with-late", help="Include rows behind the watermark, which may be dropped as late."),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be replayed.")] = False,
    why: MaybeWhy = "",
    by: By = None,
    as_json: Json = False,
) -> None:
    """Send open rows that now pass through the live transform, once, and continue the drain.

    Rows are judged by the rules, schema and options in the pipeline's folder now.
    """
    from drawdown.quarantine.request import ReplayRequest
    from drawdown.quarantine.row_states import require_table
    from drawdown.workspace import Workspace

    project = load_project()
    pipeline = load_pipeline(project, name)
    project = collect(project, [pipeline])
    with Workspace.open(project) as workspace:
        require_table(workspace, pipeline)  # nobody should wait for Spark to hear it
    asked = ReplayRequest(_choice(rules, batches, files), tuple(patch or ()), with_late)
    with Workspace.open(project) as workspace:
        if dry_run:
            return _say_what_would(workspace, pipeline, asked, as_json=as_json)
        reports, signal = in_application(
            workspace,
            pipeline,
            lambda application: [application.replay_set_aside(pipeline, asked)],
            command="drawdown quarantine replay",
            by=by or getpass.getuser(),
            why=why,
        )
    return _end(reports, signal, as_json=as_json)


@app.command()
def drop(
    name: Name,
    why: Why,
    rules: Rules = None,
    batches: Batches = None,
    files: Files = None,
    by: By = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    as_json: Json = False,
) -> None:
    """Drop open rows: no replay will include them any more. Needs no Spark."""
    from drawdown.application import new_run_id
    from drawdown.metastore import this_process
    from drawdown.observe.record import recording
    from drawdown.quarantine.drop import Drop, droppable
    from drawdown.quarantine.drop import drop as drop_rows
    from drawdown.workspace import Workspace

    project = load_project()
    pipeline = load_pipeline(project, name)
    asked = Drop(_choice(rules, batches, files), new_run_id(), this_process(), by or getpass.getuser(), why)
    with Workspace.open(project) as workspace:
        if not yes:
            rows = droppable(workspace, pipeline, asked.choice)
            if rows:
                confirm(
                    f"drop {counted(len(rows), 'row')} from the quarantine of {name}?",
                    "quarantine.unasked",
                    f"`drawdown quarantine list {name}` shows the rows; pass --yes",
                )
            asked = replace(asked, shown=frozenset(row.key for row in rows))
        with recording(workspace, name):
            dropped = drop_rows(workspace, pipeline, asked)
    if as_json:
        return print_json({"run_id": asked.run_id if dropped else None, "rows": dropped})
    out().print(f"[green]✓[/] {counted(dropped, 'row')} dropped" if dropped else "no open rows match")
    return None


@app.command()
def file(
    name: Name,
    path: Annotated[
        str,
        typer.Argument(metavar="PATH", help="As the run's error or notice has it.", show_default=False),
    ],
    why: Why,
    back: Annotated[
        bool, typer.Option("--take-back", help="Read it again in later batches, replays and rebuilds.")
    ] = False,
    by: By = None,
    as_json: Json = False,
) -> None:
    """Set a source's file aside as a whole: no batch, replay or rebuild opens it. Needs no Spark."""
    from drawdown.application import new_run_id
    from drawdown.metastore import this_process
    from drawdown.quarantine.whole_file import FileDecision, decide_file
    from drawdown.workspace import Workspace

    project = load_project()
    pipeline = load_pipeline(project, name)
    asked = FileDecision(path, new_run_id(), this_process(), by or getpass.getuser(), why, back)
    with Workspace.open(collect(project, [pipeline])) as workspace:
        source, found = decide_file(workspace, pipeline, asked)
    if as_json:
        return print_json({"run_id": asked.run_id, "source": source, "file": found, "back": back})
    done = "is read again" if back else "is set aside: no run opens it"
    out().print(f"[green]✓[/] source {source}: {found} {done}", soft_wrap=True)
    return None


def _rows(name: str, choice: Choice) -> list[SetAside]:
    from drawdown.quarantine.row_states import set_aside
    from drawdown.workspace import Workspace

    project = load_project()
    pipeline = load_pipeline(project, name)
    with Workspace.open(project) as workspace:
        return [row for row in set_aside(workspace, pipeline) if choice.fits(row)]


def _choice(
    rules: Sequence[str] | None,
    batches: Sequence[int] | None,
    files: Sequence[str] | None,
    states: Sequence[str] | None = None,
) -> Choice:
    from drawdown.quarantine.row_states import STATES, Choice

    for state in states or ():
        if state not in STATES:
            raise SpecError(
                "quarantine.state",
                f"{state!r} is not a state of quarantined rows",
                where="--state",
                do=did_you_mean(state, STATES),
            )
    return Choice(tuple(rules or ()), tuple(batches or ()), tuple(files or ()), tuple(states or ()))


def _say_what_would(workspace: Workspace, pipeline: Pipeline, asked: ReplayRequest, *, as_json: bool) -> None:
    from drawdown.application import new_run_id
    from drawdown.quarantine.spark_replay import judge_only

    with own_session(workspace.project, pipeline, "quarantine", "judging the rows") as session:
        judged = judge_only(session, workspace, pipeline, asked, new_run_id())
    if as_json:
        late = sum(feed["late"] for feed in judged.feeds.values())
        return print_json({"rows": len(judged.taken), "late": late, "left": judged.left})
    out().print(judged.said, markup=False)
    return None


def _end(reports: list[Report], signal: int | None, *, as_json: bool) -> None:
    from drawdown.application import exit_code
    from drawdown.cli.shown.runs import run_values

    report = reports[0] if reports else None
    if as_json:
        print_json(
            {
                "run": report and report.run and run_values(report.run),
                "error": report and report.error and report.error.as_dict(),
            }
        )
    elif report is not None and report.run is not None:
        out().print(
            f"{counted(report.run.counts.replayed, 'row')} replayed; {report.run.stop_reason}", markup=False
        )
    raise typer.Exit(128 + signal if signal is not None else exit_code(reports))
