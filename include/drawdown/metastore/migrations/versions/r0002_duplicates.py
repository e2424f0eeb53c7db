"""Duplicates that a deduplication dropped are counted with runs; batches have the column and no count."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Earlier records did not count them."""
    for table in ("runs", "batches"):
        op.add_column(table, sa.Column("duplicates", sa.BigInteger, nullable=False, server_default="0"))
