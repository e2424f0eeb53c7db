"""Offsets that were lost before a run could read them are counted with runs and batches."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Earlier records counted no losses."""
    for table in ("runs", "batches"):
        op.add_column(table, sa.Column("lost", sa.BigInteger, nullable=False, server_default="0"))
