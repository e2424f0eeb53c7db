"""Whether a storage keeps the promise that commits rest on: of many who create a file, one succeeds."""

from __future__ import annotations

from drawdown.errors import RefusedError
from drawdown.layout import PUT_IF_ABSENT
from drawdown.storage.storage import Storage


def refuse_unsafe(storage: Storage) -> None:
    """Create a file that exists; every run does so once, with one request, on an object store.

    Raises:
        RefusedError: ``storage.unsafe``: it was created again.
        SourceError: as `Storage.create`.
    """
    if storage.is_local:
        return
    # The first one may be the very first of this storage.
    if storage.create(PUT_IF_ABSENT, b"") and storage.create(PUT_IF_ABSENT, b""):
        raise RefusedError(
            "storage.unsafe",
            "the storage ignores the condition of a conditional put (If-None-Match): two runs could both"
            " commit a batch",
            where=storage.root,
            do="use a storage that honours it; docs/object-storage.md lists those that were tried",
        )
