"""`drawdown metastore`: brings the metastore to this program's schema. No other command does."""

from __future__ import annotations

from drawdown.cli.arguments import Json
from drawdown.cli.command import Commands
from drawdown.cli.screen import out, print_json
from drawdown.spec import load_project

app = Commands(help="The schema of the metastore (docs/upgrading.md).", no_args_is_help=True)


@app.callback()
def metastore() -> None:
    """The schema of the metastore (docs/upgrading.md)."""


@app.command()
def upgrade(
    as_json: Json = False,
) -> None:
    """Migrate the metastore to this program's schema; makes it when there is none.

    An older program that does not know the new schema is refused from then on, unless the schema allows the
    release before.
    """
    from drawdown.metastore import Metastore

    before, now = Metastore.upgrade(load_project().metastore_url)
    if as_json:
        print_json({"before": before, "now": now})
    elif before == now:
        out().print(f"the metastore has schema {now} already")
    else:
        out().print(f"the metastore has schema {now} now" + (f", it had {before}" if before else ""))
