"""Each lease knows the process that took it, so that another on the same machine sees when it is dead."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    """The processes of earlier holders are unknown: their leases stay until they expire."""
    op.add_column("leases", sa.Column("process", sa.Text))
