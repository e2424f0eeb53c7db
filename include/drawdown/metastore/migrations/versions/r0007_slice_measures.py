"""A verdict keeps what later slices are compared with: measures of its slice."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Earlier slices were not measured and do not count as history."""
    op.add_column("verdicts", sa.Column("measures", sa.Text, nullable=False, server_default="{}"))
