"""Files that batches read are kept with size and time, and runs keep what a person should know of them."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Of files that were read before, only Spark's own log knows the time."""
    op.create_table(
        "read_files",
        sa.Column("pipeline", sa.Text, primary_key=True),
        sa.Column("generation", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("source", sa.Text, primary_key=True),
        sa.Column("path", sa.Text, primary_key=True),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("mtime_ms", sa.BigInteger, nullable=False),
    )
    op.add_column("runs", sa.Column("notices", sa.Text, nullable=False, server_default="[]"))
