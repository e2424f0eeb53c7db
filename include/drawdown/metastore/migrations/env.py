"""Alembic's environment: migrates over the connection that drawdown.metastore.migrate passes.

The connection's transaction is already open and serves as the lock, so nothing is committed here.
"""

from alembic import context

from drawdown.metastore.tables import VERSION_TABLE, metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=VERSION_TABLE,
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
