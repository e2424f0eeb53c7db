"""What the last run of each pipeline took of what all pipelines share, and since when."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    op.create_table(
        "claims",
        sa.Column("pipeline", sa.Text, primary_key=True),
        sa.Column("lines", sa.Text, nullable=False),
    )
