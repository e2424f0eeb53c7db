"""How the rows of the next batch are judged, and which batch was begun, before a sink has a row."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    """The next run notes both: a batch that an older version has begun is judged by the spec of the day."""
    op.add_column("checkpoints", sa.Column("judging", sa.Text, nullable=False, server_default="{}"))
    op.add_column("checkpoints", sa.Column("begun_batch", sa.Integer))
