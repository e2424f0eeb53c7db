"""Rows without a session, counted in runs and batches; earlier records did not count them and have 0."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Adds the column `sessionless`, rows."""
    for table in ("runs", "batches"):
        op.add_column(
            table, sa.Column("sessionless", sa.BigInteger, nullable=False, server_default=sa.text("0"))
        )
