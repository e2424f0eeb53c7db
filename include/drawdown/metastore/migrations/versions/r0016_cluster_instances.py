"""Clusters are known by an instance of their own, not by the key of their run, which a second try has too."""

import sqlalchemy as sa
from alembic import op

from drawdown.metastore.older_clusters import as_instance

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    made = op.create_table(
        "cluster_instances",
        sa.Column("instance", sa.Text, primary_key=True),
        sa.Column("cluster_key", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("profile", sa.Text, nullable=False),
        sa.Column("down", sa.Text, nullable=False),
        sa.Column("workers", sa.Integer, nullable=False),
        sa.Column("cores", sa.Integer, nullable=False),
        sa.Column("memory", sa.Text, nullable=False),
        sa.Column("asked_by", sa.Text, nullable=False),
        sa.Column("begun_at", sa.BigInteger, nullable=False),
        sa.Column("up_by", sa.BigInteger, nullable=False),
        sa.Column("deadline", sa.BigInteger, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("answer", sa.Text),
        sa.Column("tries", sa.Integer, nullable=False),
        sa.Column("next_try_at", sa.BigInteger),
        sa.Column("last_error", sa.Text),
    )
    op.create_index("ix_cluster_instances_cluster_key", "cluster_instances", ["cluster_key"])
    conn = op.get_bind()
    for row in conn.execute(sa.text("SELECT * FROM clusters")).mappings().all():
        conn.execute(sa.insert(made).values(**as_instance(dict(row))))
    # The table stays: programs of the release before go on with it (operations/clusters.py adopts from it).
    conn.execute(sa.text("DELETE FROM clusters"))
