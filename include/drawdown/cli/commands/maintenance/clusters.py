"""`drawdown clusters`: lists what programs of the project have started, ends it, or takes a person's word."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from drawdown.cli.arguments import Json, Wide
from drawdown.cli.command import Commands
from drawdown.cli.confirm import confirm
from drawdown.cli.screen import out, print_json
from drawdown.errors import MachineError, SpecError
from drawdown.spec import Project, load_project

if TYPE_CHECKING:
    from drawdown.cli.shown.listing import Listing
    from drawdown.metastore import Metastore
    from drawdown.metastore.records import StartedCluster

app = Commands(
    help="Clusters of `kind: commands` that are recorded (docs/clusters.md).", no_args_is_help=True
)

ClusterName = Annotated[str, typer.Argument(metavar="NAME", show_default=False)]


@app.callback()
def clusters() -> None:
    """Clusters of `kind: commands` that are recorded (docs/clusters.md)."""


@app.command("list")
def listed(wide: Wide = False, as_json: Json = False) -> None:
    """List the clusters of `kind: commands` that are recorded, and which of them are not known to be gone."""
    from drawdown.fleet.started_clusters import why_red
    from drawdown.metastore import Metastore

    with Metastore.open(load_project().metastore_url) as metastore:
        now = metastore.now()
        found = [(each, why_red(each, now)) for each in metastore.clusters.standing()]
    if as_json:
        return print_json({"clusters": [_values(each, why) for each, why in found]})
    if not found:
        return out().print("no cluster of kind commands is recorded")
    out().print(_table(found, wide=wide))
    for each, why in found:
        if why:
            out().print(f"{each.name} {why}", markup=False, soft_wrap=True)
    return None


@app.command()
def end(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", show_default=False)] = None,
    as_json: Json = False,
) -> None:
    """Call `down` of a cluster now; without a name, of each that no run needs any more."""
    from drawdown.launch.commands.reaper import end_all, end_overdue
    from drawdown.metastore import Metastore

    project = load_project()
    with Metastore.open(project.metastore_url) as metastore:
        ended = (
            end_overdue(project, metastore) if name is None else end_all(project, [_named(metastore, name)])
        )
    if as_json:
        print_json({"clusters": [asdict(each) for each in ended]})
    else:
        for each in ended:
            out().print(each.sentence, markup=False, soft_wrap=True)
        if not ended:
            out().print("no cluster is overdue")
    if not all(each.gone for each in ended):
        raise typer.Exit(MachineError.exit_code)


@app.command()
def gone(
    name: ClusterName,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: Json = False,
) -> None:
    """Say that you have seen that the machines of a cluster are gone: nothing calls `down` for it again."""
    from drawdown.metastore import Metastore

    project: Project = load_project()
    with Metastore.open(project.metastore_url) as metastore:
        cluster = _named(metastore, name)
        if not yes:
            question = (
                f"Are all machines of {cluster.name} ({cluster.profile}) gone? Nothing looks for them again."
            )
            confirm(question, "clusters.unasked", f"drawdown clusters gone {name} --yes")
        metastore.clusters.change(cluster.instance, lambda found, now: None)
    if as_json:
        return print_json({"cluster": name, "gone": True})
    return out().print(f"[green]✓[/] {name} counts as gone", highlight=False)


def _named(metastore: Metastore, name: str) -> StartedCluster:
    """Return a recorded cluster. Raises SpecError ``clusters.unknown``."""
    for each in metastore.clusters.standing():
        if name in (each.name, each.instance):
            return each
    raise SpecError(
        "clusters.unknown",
        f"no cluster {name!r} is recorded",
        where="the metastore",
        do="drawdown clusters list",
    )


def _table(found: list[tuple[StartedCluster, str]], *, wide: bool) -> Listing:
    from drawdown.cli.shown.listing import Heading, listing, plain
    from drawdown.values.text import utc

    columns = [
        Heading("cluster", "text"),
        Heading("state"),
        Heading("until"),
        Heading("profile", "text", wide=True),
        Heading("run", "text", wide=True),
        Heading("tries", "number", wide=True),
    ]
    rows = [
        [
            each.name,
            "not gone" if why else each.state,
            utc(each.deadline),
            each.profile,
            each.cluster_key,
            plain(each.tries),
        ]
        for each, why in found
    ]
    return listing(columns, rows, wide=wide, title="clusters")


def _values(cluster: StartedCluster, why: str) -> dict[str, Any]:
    return {
        "name": cluster.name,
        "instance": cluster.instance,
        "run": cluster.cluster_key,
        "profile": cluster.profile,
        "state": "not known to be gone" if why else cluster.state,
        "why": why,
        "begun_at": cluster.begun_at.isoformat(),
        "deadline": cluster.deadline.isoformat(),
        "tries": cluster.tries,
        "next_try_at": None if cluster.next_try_at is None else cluster.next_try_at.isoformat(),
    }
