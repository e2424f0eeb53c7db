"""Tables of PostgreSQL as a sink."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from drawdown.kinds import Keeps, SinkKind
from drawdown.values.model import problem

if TYPE_CHECKING:
    from drawdown.spec import Sink

LEDGER = "drawdown_ledger"
"""The table in each schema that records what was published into the other tables."""

_NOT_OURS = re.compile(rf"(pg_\w*|information_schema)\..*|.*\.{LEDGER}", re.IGNORECASE)


def _check(sink: Sink) -> None:
    table = str(sink.table)
    if "." not in table:
        raise problem("wrong-value", "must name its schema", "table", do=f"write public.{table}")
    if _NOT_OURS.fullmatch(table):
        raise problem("wrong-value", "is a table that no pipeline may write", "table", do="name another")


KIND = SinkKind(
    formats=("postgres",),
    title="PostgreSQL",
    page="postgres.md",
    stage=lambda _: "drawdown.sinks.postgres.stage:PostgresSink",
    target=lambda _: "drawdown.sinks.postgres.publish:output_target",
    staging=lambda _, __: "apart",
    shown=lambda sink: f"{sink.database} {sink.table}",
    keys=frozenset({"table", "database", "keys", "time_column"}),
    required=(("table", "table: public.x"), ("schema", "schema: schemas/x.ddl")),
    options={"postgres": frozenset()},
    check=_check,
    keeps=Keeps(zero=False, years="1 to 9999 (DATE and TIMESTAMP columns also later ones)", key_bytes=2600),
    readable=True,
    no_replay=None,
)
