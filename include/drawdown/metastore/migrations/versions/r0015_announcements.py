"""Which alerts were announced to which target: once for each change of state."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    op.create_table(
        "announcements",
        sa.Column("pipeline", sa.Text, primary_key=True),
        sa.Column("alert", sa.Text, primary_key=True),
        sa.Column("target", sa.Text, primary_key=True),
        sa.Column("since", sa.BigInteger, nullable=False),
        sa.Column("sentence", sa.Text, nullable=False),
        sa.Column("told_at", sa.BigInteger),
        sa.Column("ended_at", sa.BigInteger),
    )
