"""The versions of a Delta table: which held a batch last, and going back to it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

from drawdown.metastore.records import Change
from drawdown.publishing.delta_table import DeltaTableFiles, commit_properties


class DeltaHistory:
    """One Delta table by its absolute path or URL, and its earlier versions.

    Raises (from every method):
        SourceError: ``sink.unreadable`` or ``sink.unwritable``.
    """

    def __init__(self, uri: str) -> None:
        self._files = DeltaTableFiles(uri)

    def version_with(self, app_id: str, last: int) -> tuple[int, int]:
        """The newest version that holds no batch behind `last`, and the last batch it holds (-1: none)."""
        with self._reading():
            table = self._open()
            for version in range(table.version(), -1, -1):
                table.load_as_version(version)
                found = table.transaction_version(app_id)
                held = -1 if found is None else int(found)
                if held <= last:
                    return version, held
        raise AssertionError("version 0 of a table holds no batch")

    @property
    def newest(self) -> int:
        """The version that is the newest now."""
        return DeltaTableFiles(self._files.uri).version

    def restore(self, version: int, change: Change, batches: Mapping[str, int]) -> None:
        """Bring the rows of a version back, in one commit that says again which batches they end with.

        A plain RESTORE leaves the transaction ids at the newest batches, and the sink would skip the batches
        that come again.

        Args:
            batches: by transaction id the last batch that the table holds behind it.
        """
        with self._files.reaching(
            "sink.unwritable", "cannot go back", "look whether its files were vacuumed"
        ):
            said = commit_properties(change, batches, {"drawdown.restored": str(version)})
            self._open().restore(version, commit_properties=said)

    def _reading(self) -> AbstractContextManager[None]:
        return self._files.reaching(
            "sink.unreadable", "cannot be read", "look whether it was moved or deleted"
        )

    def _open(self) -> Any:
        from deltalake import DeltaTable

        return DeltaTable(self._files.uri)
