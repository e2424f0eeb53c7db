"""`drawdown quarantine`: rows that were set aside: list, show, replay what passes now, drop the rest."""

from __future__ import annotations

import getpass
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from drawdown.cli.application import in_application
from drawdown.cli.command import Commands
from drawdown.cli.confirm import confirm
from drawdown.cli.screen import out, print_json
from drawdown.errors import SpecError

if TYPE_CHECKING:
    from drawdown.application.watcher import Report
    from drawdown.quarantine.rows import Choice, SetAside
    from drawdown.quarantine.spark_replay import ReplayRequest
    from drawdown.spec import Pipeline
    from drawdown.workspace import Workspace

app = Commands(
    help="The rows that were set aside: list, show, replay what passes now, drop the rest.",
    no_args_is_help=True,
)
Name = Annotated[str, typer.Argument(metavar="PIPELINE", show_default=False)]
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
    typer.Option("--file", help="Only rows of this file: its path, or the end of it.", show_default=False),
]
States = Annotated[
    list[str] | None,
    typer.Option("--state", help="Only rows in this state, such as open or replayed.", show_default=False),
]
By = Annotated[str | None, typer.Option("--by", help="Who decides; by default the user.", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")]


@app.command("list")
def list_rows(
    name: Name, rules: Rules = None, batches: Batches = None, files: Files = None, as_json: Json = False
) -> None:
    """Count the rows per rule, batch and day, by what became of them. Needs no Spark."""
    from drawdown.cli.shown.quarantine import counts_table, total_line
    from drawdown.quarantine.rows import counted, counts, totals
    from drawdown.spec import load_pipeline, load_project
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
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="At most so many rows.")] = 20,
    as_json: Json = False,
) -> None:
    """Show rows: why, where they came from, and the record as it came. Needs no Spark."""
    from drawdown.cli.shown.quarantine import row_lines

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
        typer.Option("--with-late", help="Also rows that the watermark has passed: they may be dropped."),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would go in; replay nothing.")] = False,
    why: Annotated[str, typer.Option("--why", help="Kept in the run record.")] = "",
    by: By = None,
    as_json: Json = False,
) -> None:
    """Send the open rows that pass now through the live transform, once; then drain on.

    The quarantine's rules, schema and options are those of the pipeline's folder as it is now.
    """
    from drawdown.credentials import collect
    from drawdown.quarantine.spark_replay import ReplayRequest
    from drawdown.spec import load_pipeline, load_project
    from drawdown.workspace import Workspace

    project = load_project()
    pipeline = load_pipeline(project, name)
    project = collect(project, [pipeline])
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
    why: Annotated[str, typer.Option("--why", help="Kept in the run record.", show_default=False)],
    rules: Rules = None,
    batches: Batches = None,
    files: Files = None,
    by: By = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: Json = False,
) -> None:
    """Decide that open rows are not wanted: no replay takes them any more. Needs no Spark."""
    from dataclasses import replace

    from drawdown.application import new_run_id
    from drawdown.metastore import this_process
    from drawdown.quarantine.drop import Drop, droppable
    from drawdown.quarantine.drop import drop as drop_rows
    from drawdown.spec import load_pipeline, load_project
    from drawdown.workspace import Workspace

    project = load_project()
    pipeline = load_pipeline(project, name)
    asked = Drop(_choice(rules, batches, files), new_run_id(), this_process(), by or getpass.getuser(), why)
    with Workspace.open(project) as workspace:
        if not yes:
            rows = droppable(workspace, pipeline, asked.choice)
            if rows:
                confirm(
                    f"drop {len(rows):,} row(s) of the quarantine of {name}?",
                    "quarantine.unasked",
                    f"`drawdown quarantine list {name}` shows what would go; say --yes",
                )
            asked = replace(asked, shown=frozenset(row.key for row in rows))
        dropped = drop_rows(workspace, pipeline, asked)
    if as_json:
        return print_json({"run_id": asked.run_id if dropped else None, "rows": dropped})
    out().print(f"[green]✓[/] {dropped:,} row(s) dropped" if dropped else "no open row is like that")
    return None


def _rows(name: str, choice: Choice) -> list[SetAside]:
    from drawdown.quarantine.rows import set_aside
    from drawdown.spec import load_pipeline, load_project
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
    from drawdown.quarantine.rows import STATES, Choice
    from drawdown.values.nearest import did_you_mean

    for state in states or ():
        if state not in STATES:
            raise SpecError(
                "quarantine.state",
                f"no row is ever {state!r}",
                where="--state",
                do=did_you_mean(state, STATES),
            )
    return Choice(tuple(rules or ()), tuple(batches or ()), tuple(files or ()), tuple(states or ()))


def _say_what_would(workspace: Workspace, pipeline: Pipeline, asked: ReplayRequest, *, as_json: bool) -> None:
    from drawdown.application import new_run_id
    from drawdown.cli.session import own_session
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
        out().print(f"{report.run.counts.replayed:,} row(s) replayed; {report.run.stop_reason}", markup=False)
    raise typer.Exit(128 + signal if signal is not None else exit_code(reports))
