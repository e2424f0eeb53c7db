"""Checkpoints of a Delta table's log, so that opening the table does not read every entry since its creation.

Every opening reads the newest checkpoint and the entries after it. In a bucket each entry is a request, and a
run opens its table a dozen times. delta-rs writes a checkpoint only every hundred entries, Spark every ten.
"""

from __future__ import annotations

import logging

from drawdown.errors import SourceError
from drawdown.storage import Storage, object_options
from drawdown.values.json_text import read_json

log = logging.getLogger(__name__)

EVERY = 10
"""Entries of the log from one checkpoint to the next, as in Delta for Spark."""
_NEWEST = "_delta_log/_last_checkpoint"


def shorten_log(uri: str, version: int) -> None:
    """Write a checkpoint if the last one is `EVERY` entries behind a version; it changes no row.

    A failure is logged and nothing more: the commit before it is done, and the next one tries again.
    """
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError

    try:
        if version - _last_checkpoint(uri) >= EVERY:
            DeltaTable(uri, storage_options=object_options(uri)).create_checkpoint()
    except (DeltaError, OSError, SourceError) as cause:
        log.warning("no checkpoint of the log of %s, the next commit tries again: %s", uri, cause)


def _last_checkpoint(uri: str) -> int:
    """Return the version of the newest checkpoint; 0, as of a log without one, when nothing says it."""
    try:
        return int(read_json(Storage(uri).read_bytes(_NEWEST))["version"])
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return 0
