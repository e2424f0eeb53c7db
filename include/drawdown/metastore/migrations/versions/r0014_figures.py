"""What was last recorded of each pipeline, what waited at its sources, and the phases of runs."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    op.create_table(
        "figures",
        sa.Column("pipeline", sa.Text, primary_key=True),
        sa.Column("recorded_at", sa.BigInteger, nullable=False),
        sa.Column("content", sa.Text, nullable=False),
    )
    op.create_table(
        "backlogs",
        sa.Column("pipeline", sa.Text, primary_key=True),
        sa.Column("seen_at", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("by_source", sa.Text, nullable=False),
    )
    op.add_column("runs", sa.Column("phases", sa.Text))
