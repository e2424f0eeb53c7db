"""A batch keeps the keys of the sink under which it was staged, whatever the spec says afterwards."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    """How earlier batches were staged was not noted: the spec of the day decides about them, as before."""
    op.add_column("batches", sa.Column("treatment", sa.Text, nullable=False, server_default="{}"))
