"""Each lease knows the process that took it, so that another on the same machine sees when it is dead."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    """Of holders of before nothing is known: their leases keep their time."""
    op.add_column("leases", sa.Column("process", sa.Text))
