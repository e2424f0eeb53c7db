"""`drawdown checkpoint`: show, verify, copy and restore a checkpoint. Only `accept` needs Spark."""

from __future__ import annotations

import getpass
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from drawdown.cli.arguments import By, Json, MaybeWhy, Name, Why
from drawdown.cli.command import Commands
from drawdown.cli.screen import out, print_json, working
from drawdown.cli.session import own_session
from drawdown.credentials import collect
from drawdown.spec import load_pipeline, load_project
from drawdown.values.text import counted

if TYPE_CHECKING:
    from drawdown.metastore.records import Lease
    from drawdown.workspace import Generation

app = Commands(
    help="Show, verify, copy, restore and repair a checkpoint. Only `accept` needs Spark.",
    no_args_is_help=True,
)
Sink = Annotated[
    bool,
    typer.Option(
        "--sink", help="Also reset the sink: later rows disappear until the replay writes them again."
    ),
]
Yes = Annotated[
    bool,
    typer.Option(
        "--yes", help="Continue although streams over the sink's table will read its rows a second time."
    ),
]
_Done = TypeVar("_Done")


@app.command()
def show(name: Name, as_json: Json = False) -> None:
    """Batches, offsets, watermark, sizes, state stores, snapshots, and the metastore's view."""
    from drawdown.cli.shown.checkpoint import overview_tables
    from drawdown.recovery.overview import overview

    with _generation(name) as generation:
        found = overview(generation)
        is_there = generation.checkpoint is not None or generation.files.exists
    if as_json:
        return print_json(found)
    if not is_there:
        return out().print(_none_yet(name), markup=False)
    for part in overview_tables(found):
        out().print(part)
    return None


@app.command()
def verify(name: Name, as_json: Json = False) -> None:
    """Read every log and state file and report damaged or missing ones; changes nothing.

    The exit code is 3 if there are any.
    """
    from drawdown.cli.shown.checkpoint import fault_lines
    from drawdown.recovery.repair.advice import torn_error
    from drawdown.recovery.repair.faults import all_faults

    with _generation(name) as generation:
        with working("reading the checkpoint"):
            faults = all_faults(generation)
        error = torn_error(generation, faults) if faults else None
        rows = [_fault_values(generation, fault) for fault in faults]
        is_there = generation.checkpoint is not None or generation.files.exists
    if as_json:
        print_json({"pipeline": name, "faults": rows, "do": error.do if error else ""})
    elif error is None and not is_there:
        out().print(_none_yet(name), markup=False)
    elif error is None:
        out().print("[green]✓[/] every file is intact")
    else:
        for line in fault_lines(rows):
            out().print(line, soft_wrap=True)
    if error is not None:
        raise error


@app.command()
def snapshot(name: Name, why: MaybeWhy = "", by: By = None, as_json: Json = False) -> None:
    """Copy the checkpoint and its metastore records; `show` lists the copies."""
    from drawdown.recovery.snapshots import take_snapshot

    with _generation(name) as generation:
        done = _as_run(
            generation,
            ("snapshot", by, why),
            lambda lease: take_snapshot(generation, lease),
            lambda s: f"snapshot {s.name}: last batch {s.last_batch}, {counted(s.files, 'file')}",
        )
    values = {"name": done.name, "last_batch": done.last_batch, "files": done.files, "bytes": done.bytes}
    size = f"{counted(done.files, 'file')}, {counted(done.bytes, 'byte')}"
    _say(as_json, values, f"snapshot {done.name}: last batch {done.last_batch}; {size}")


@app.command()
def restore(
    name: Name,
    snapshot: Annotated[
        str,
        typer.Argument(
            help="Name of the snapshot, the beginning of the name, or `latest`.", show_default=False
        ),
    ],
    sink: Sink = False,
    yes: Yes = False,
    why: MaybeWhy = "",
    by: By = None,
    as_json: Json = False,
) -> None:
    """Restore a snapshot. Refused when the sink has later batches."""
    from drawdown.recovery.restore import named_snapshot
    from drawdown.recovery.restore import restore as put_back

    with _generation(name) as generation:
        chosen = named_snapshot(generation, snapshot)
        done = _as_run(
            generation,
            ("restore", by, why),
            lambda lease: put_back(generation, chosen, lease, sink=sink, yes=yes),
            lambda s: f"restored snapshot {s.name}: batch {s.last_batch} is the last",
        )
    values = {"name": done.name, "last_batch": done.last_batch}
    _say(as_json, values, f"snapshot {done.name} is back: batch {done.last_batch} is the last committed one")


@app.command()
def rewind(
    name: Name,
    to: Annotated[
        int,
        typer.Option("--to", min=0, help="The batch to go back to; it becomes the last.", show_default=False),
    ],
    sink: Sink = False,
    yes: Yes = False,
    why: MaybeWhy = "",
    by: By = None,
    as_json: Json = False,
) -> None:
    """Go back to an earlier batch; the next run replays the later ones."""
    from drawdown.recovery.rewind import rewind as go_back

    with _generation(name) as generation:
        done = _as_run(
            generation,
            ("rewind", by, why),
            lambda lease: go_back(generation, to, lease, sink=sink, yes=yes),
            lambda rewound: f"rewound to batch {to}: to come again: {counted(len(rewound.batches), 'batch')}",
        )
    text = f"batch {to} is the last; {len(done.batches)} come again"
    if done.sink.replays:
        said = ", ".join(done.sink.replays)
        text += f"; replays that were undone: {said} (`drawdown backfill` repeats them)"
    if done.sink.readers:
        said = ", ".join(done.sink.readers)
        text += f"; streams of the table read these rows twice: {said} (then `drawdown rebuild start` each)"
    undone = {"replays_undone": done.sink.replays, "readers": done.sink.readers}
    _say(as_json, {"last_batch": to, "taken_back": done.batches, **undone}, text)


@app.command()
def repair(name: Name, why: MaybeWhy = "", by: By = None, as_json: Json = False) -> None:
    """Fix what can be fixed without loss; keeps a copy of the old files."""
    from drawdown.recovery.repair.repair import repair as fix

    with _generation(name) as generation:
        done = _as_run(
            generation,
            ("repair", by, why),
            lambda lease: fix(generation, lease),
            lambda repaired: "; ".join(f"{m.fault.path}: {m.says}" for m in repaired.fixed),
        )
        fixed = [{**_fault_values(generation, m.fault), "says": m.says} for m in done.fixed]
        left = [_fault_values(generation, fault) for fault in done.left]
    _say(
        as_json,
        {"mended": fixed, "left": left, "kept": done.kept},
        "\n".join(f"{each['file']}: {each['says']}" for each in fixed) + f"\nthe old files: {done.kept}",
    )


@app.command()
def move(
    name: Name,
    old: Annotated[
        str, typer.Option("--from", help="The old storage root, which was copied here.", show_default=False)
    ],
    why: MaybeWhy = "",
    by: By = None,
    as_json: Json = False,
) -> None:
    """Update file paths after the storage was copied to another root, so that no file is read again."""
    from drawdown.recovery.move import move as name_anew

    with _generation(name) as generation:
        done = _as_run(
            generation,
            ("move", by, why),
            lambda lease: name_anew(generation, old, lease),
            lambda moved: (
                f"moved from {old}: {counted(moved.lines, 'file')} in logs, {moved.rows:,} in the metastore"
            ),
        )
    text = (
        f"now named in their new place: {counted(done.lines, 'file')} in logs, {done.rows:,} in the metastore"
    )
    _say(as_json, {"lines": done.lines, "rows": done.rows}, text)


@app.command()
def prune(
    name: Name,
    keep: Annotated[int, typer.Option(min=0, help="Number of newest snapshots to keep.")] = 3,
    previous: Annotated[
        bool, typer.Option("--previous", help="Also remove what a roll back of the last rebuild needs.")
    ] = False,
    why: MaybeWhy = "",
    by: By = None,
    as_json: Json = False,
) -> None:
    """Remove what a restart does not need: old log entries, generations, leftovers, snapshots."""
    from drawdown.recovery.prune import prune as remove

    with _generation(name) as generation:
        done = _as_run(
            generation,
            ("prune", by, why),
            lambda lease: remove(generation, lease, keep=keep, previous=previous),
            lambda pruned: f"removed {counted(pruned.files, 'file')}, {counted(pruned.bytes, 'byte')}",
        )
    removed = {what: [info.relative for info in infos] for what, infos in done.removed.items()}
    what = ", ".join(f"{len(paths):,} of {kind}" for kind, paths in removed.items()) or "nothing to remove"
    _say(as_json, {"bytes": done.bytes, "removed": removed}, f"{what}; {counted(done.bytes, 'byte')}")


@app.command()
def accept(
    name: Name,
    why: Why,
    by: By = None,
    as_json: Json = False,
) -> None:
    """Accept the checkpoint if only versions and their descriptions of operators changed, not the meaning.

    Starts Spark to analyse the query. For a Python transform only its own file is compared.
    """
    from drawdown.drain.accept import accept as go_on

    def work(lease: Callable[[], Lease]) -> list[str]:
        project, pipeline = generation.project, generation.pipeline
        with own_session(project, pipeline, "checkpoint accept", "analysing the query") as session:
            return go_on(session, generation, lease)

    with _generation(name) as generation:
        done = _as_run(
            generation,
            ("accept", by, why),
            work,
            lambda changed: f"accepted: {'; '.join(changed)}",
        )
    _say(as_json, {"accepted": done}, f"accepted: {'; '.join(done)}")


def _none_yet(name: str) -> str:
    return f"{name} has no checkpoint yet: drawdown run {name}"


@contextmanager
def _generation(name: str) -> Iterator[Generation]:
    from drawdown.plan.version_in_use import in_use
    from drawdown.workspace import Generation, Workspace

    project = load_project()
    pipeline = load_pipeline(project, name)
    with Workspace.open(project) as workspace:
        pipeline = in_use(workspace, pipeline)
        yield Generation.of(replace(workspace, project=collect(project, [pipeline])), pipeline)


def _as_run(
    generation: Generation,
    asked: tuple[str, str | None, str],
    work: Callable[[Callable[[], Lease]], _Done],
    summary: Callable[[_Done], str],
) -> _Done:
    from drawdown.application import new_run_id
    from drawdown.metastore import this_process
    from drawdown.observe.record import recording
    from drawdown.recovery.request import RecoveryRequest, as_run

    kind, by, why = asked
    request = RecoveryRequest(kind, new_run_id(), this_process(), by or getpass.getuser(), why)
    with recording(generation.workspace, generation.pipeline.name):
        return as_run(generation, request, work, summary)


def _fault_values(generation: Generation, fault: Any) -> dict[str, Any]:
    return {
        "file": generation.storage.path(fault.path),
        "part": fault.part,
        "kind": fault.kind,
        "needed": fault.needed,
        "what": fault.what,
    }


def _say(as_json: bool, values: Any, text: str) -> None:
    if as_json:
        print_json(values)
    else:
        out().print("[green]✓[/] ", end="")
        out().print(text, markup=False)
