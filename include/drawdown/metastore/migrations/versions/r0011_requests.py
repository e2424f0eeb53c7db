"""Each run knows the request that it belongs to: a DAG run, or a command."""

import json
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"

_AT_ONCE = 1_000


def upgrade() -> None:
    """Earlier runs have it in their origin."""
    op.add_column("runs", sa.Column("request", sa.Text))
    runs = sa.table("runs", *(sa.column(name) for name in ("run_id", "origin", "request")))
    conn = op.get_bind()
    there = conn.execute(sa.select(runs.c.run_id, runs.c.origin)).all()
    known = [{"id": row.run_id, "of": of} for row in there if (of := _request(json.loads(row.origin)))]
    fill = sa.update(runs).where(runs.c.run_id == sa.bindparam("id")).values(request=sa.bindparam("of"))
    for first in range(0, len(known), _AT_ONCE):
        conn.execute(fill, known[first : first + _AT_ONCE])
    op.create_index("ix_runs_request", "runs", ["request"])


def _request(origin: dict[str, Any]) -> str | None:
    """As runs.py made it when this was written."""
    for keys in (("dag_id", "dag_run_id"), ("command_id",)):
        if all(key in origin for key in keys):
            return json.dumps([origin[key] for key in keys], separators=(",", ":"))
    return None
