"""The metastore: what runs did, what is staged, audited and published, and who may write."""

from drawdown.metastore.operations.leases import this_process
from drawdown.metastore.store import Metastore

__all__ = ["Metastore", "this_process"]
