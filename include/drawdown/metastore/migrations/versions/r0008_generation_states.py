"""A pipeline may have several generations: one is in use, one may be a rebuild's, others are retired."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Until now every pipeline had one generation, which was in use."""
    op.add_column("checkpoints", sa.Column("state", sa.Text, nullable=False, server_default="live"))
    op.add_column("checkpoints", sa.Column("rebuild", sa.Text, nullable=False, server_default="{}"))
