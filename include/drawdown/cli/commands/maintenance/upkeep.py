"""`drawdown upkeep`: compacts tables and removes unneeded files and records. Needs no Spark."""

from __future__ import annotations

import getpass
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from drawdown.cli.arguments import Json, Names
from drawdown.cli.chosen import chosen
from drawdown.cli.screen import err, out, print_json, show_error
from drawdown.launch.commands.reaper import end_overdue
from drawdown.launch.standalone.reaper import reap
from drawdown.spec import load_project

if TYPE_CHECKING:
    from drawdown.cli.shown.listing import Listing
    from drawdown.upkeep import Tidied


def upkeep(
    names: Names = None,
    every: Annotated[bool, typer.Option("--all", help="Every pipeline.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.")] = False,
    as_json: Json = False,
) -> None:
    """Compact small files and remove old versions and records, as far as they are no longer needed.

    A pipeline with an active run is skipped until the next time.
    """
    from drawdown.application import exit_code, new_run_id
    from drawdown.application.watcher import Report
    from drawdown.observe.record import record
    from drawdown.upkeep import tidy_all
    from drawdown.upkeep.left_uploads import remove_left_uploads
    from drawdown.upkeep.leftovers import tidy_machine
    from drawdown.upkeep.removed_pipelines import removed_pipelines
    from drawdown.workspace import Workspace

    project = load_project()
    pipelines = chosen(project, names or (), every=every)
    with Workspace.open(project) as workspace:
        origin = {"command": "drawdown upkeep", "by": getpass.getuser()}
        found = list(tidy_all(workspace, pipelines, origin, new_run_id, dry=dry_run))
        if not dry_run:
            record(workspace, [each.pipeline for each in found])
        removed = removed_pipelines(workspace) if every else []
        overdue = end_overdue(project, workspace.metastore) if every and not dry_run else []
    here = [*tidy_machine(project, dry=dry_run), *reap(project, dry=dry_run)] if every else []
    here += [each.sentence for each in overdue]
    here += remove_left_uploads(project, dry=dry_run) if every else []
    if as_json:
        left = [asdict(each) for each in removed]
        print_json({"pipelines": [_values(each) for each in found], "machine": here, "removed": left})
    else:
        out().print(_table(found, dry=dry_run))
        for each in found:
            for note in ((each.said,) if each.expired or each.stripped else ()) + tuple(each.notes):
                out().print(f"{each.pipeline}: {note}", markup=False, soft_wrap=True)
        for sentence in (*here, *map(str, removed)):
            out().print(sentence, markup=False, soft_wrap=True)
    for each in found:
        if each.error is not None:
            show_error(each.error)
    if dry_run and not as_json:
        err().print("nothing was changed: --dry-run")
    raise typer.Exit(exit_code([Report(each.pipeline, error=each.error) for each in found]))


def _table(found: list[Tidied], *, dry: bool) -> Listing:
    from drawdown.cli.shown.listing import Heading, listing, plain

    verb = "to remove" if dry else "removed"
    columns = [
        Heading("pipeline", "text"),
        Heading("compacted", "number"),
        Heading("table files", "number"),
        Heading("checkpoint files", "number"),
        Heading("records", "number"),
        Heading("bytes", "number"),
    ]
    rows = [
        [
            each.pipeline,
            _compacted(each),
            plain(sum(len(infos) for infos in each.vacuumed.values())),
            plain(each.pruned.files),
            plain(each.rows),
            plain(each.bytes),
        ]
        for each in found
    ]
    return listing(columns, rows, title=f"{verb}, and files to compact" if dry else verb)


def _compacted(tidied: Tidied) -> str:
    before = sum(done.before for done in tidied.compacted.values())
    after = sum(done.after for done in tidied.compacted.values())
    if not before:
        return "-"
    return f"{before:,}" + (f" → {after:,}" if after else "")


def _values(tidied: Tidied) -> dict[str, Any]:
    return {
        "pipeline": tidied.pipeline,
        "compacted": {
            table: {"before": done.before, "after": done.after} for table, done in tidied.compacted.items()
        },
        "vacuumed": {table: [info.relative for info in infos] for table, infos in tidied.vacuumed.items()},
        "pruned": {what: [info.relative for info in infos] for what, infos in tidied.pruned.removed.items()},
        "expired": tidied.expired,
        "stripped": tidied.stripped,
        "bytes": tidied.bytes,
        "records": tidied.records,
        "notes": tidied.notes,
        "error": tidied.error.as_dict() if tidied.error else None,
    }
