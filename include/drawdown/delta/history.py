"""The versions of a Delta table: which one ends with a batch, what came after it, and how to restore it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any

from drawdown.delta.table import DeltaTableFiles, commit_properties
from drawdown.errors import RefusedError
from drawdown.metastore.records import Change
from drawdown.storage import Storage, object_options
from drawdown.values.json_text import read_json
from drawdown.values.text import counted


class DeltaHistory:
    """One Delta table by its absolute path or URL, and its earlier versions.

    Raises (from every method):
        SourceError: ``sink.unreadable`` or ``sink.unwritable``.
    """

    def __init__(self, storage: Storage, uri: str) -> None:
        self._storage = storage
        self._files = DeltaTableFiles(uri)

    def version_with(self, app_id: str, last: int) -> tuple[int, int]:
        """Return the newest version without a batch after `last`, and the last batch in it (-1: none)."""
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
        """Return the table's newest version."""
        return DeltaTableFiles(self._files.uri).version

    def late_releases(self, app_id: str, version: int) -> list[int]:
        """Return the first batch of each slice that was released out of order after a version."""
        marked = f"{app_id}/held/"
        ids = (action["txn"]["appId"] for _, action in self._since(version) if "txn" in action)
        return [int(each.rpartition(".")[2]) for each in ids if each.startswith(marked)]

    def replays(self, version: int) -> list[str]:
        """Return the intervals that were replayed after a version, oldest first."""
        said = (info for _, info in self._said_since(version))
        return [str(info["drawdown.replay"]) for info in said if "drawdown.replay" in info]

    def replays_in(self, change_ids: Collection[str]) -> set[str]:
        """Return which of these changes are replays in the table's current rows, as far back as its log goes.

        A replay after a version to which the table was later restored is not.
        """
        found: dict[str, int] = {}
        for version, info in self._said_since(-1):
            if "drawdown.restored" in info:
                back_to = int(info["drawdown.restored"])
                found = {change: made for change, made in found.items() if made <= back_to}
            elif info.get("drawdown.kind") == "replay" and info.get("drawdown.change") in change_ids:
                found[info["drawdown.change"]] = version
        return set(found)

    def gone_files(self, version: int) -> list[str]:
        """Return the files of a version, below the table's folder, that no longer exist."""
        then = self._files.as_of(version)
        if then is None:
            return [f"{self._files.uri}/_delta_log"]
        folder = self._storage.relative(self._files.uri)
        there = {info.path for info in self._storage.walk(folder)}
        return sorted(path for path in then.referenced() - there if path.startswith(f"{self._files.uri}/"))

    def refuse_vacuumed(self, version: int, do: str) -> None:
        """Refuse to restore a version with missing files; changes nothing.

        Raises:
            RefusedError: ``sink.vacuumed``.
        """
        if gone := self.gone_files(version):
            raise RefusedError(
                "sink.vacuumed",
                f"vacuumed or deleted: {counted(len(gone), 'file')} of version {version} of the table, for"
                f" example {gone[0]}",
                where=self._files.uri,
                do=do,
            )

    def restore(
        self, version: int, change: Change, batches: Mapping[str, int], *, without_gone: bool = False
    ) -> None:
        """Restore the rows of a version, in one commit that also sets the last batch of each transaction id.

        A plain RESTORE leaves the transaction ids at the newest batches, and the sink would skip batches
        that are repeated.

        Args:
            batches: by transaction id, the last batch that the table holds after the commit.
            without_gone: continue without missing files of the version.
        """
        with self._files.reaching(
            "sink.unwritable", "cannot go back", "look whether its files were vacuumed"
        ):
            said = commit_properties(change, batches, {"drawdown.restored": str(version)})
            self._open().restore(version, ignore_missing_files=without_gone, commit_properties=said)

    def _said_since(self, version: int) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield each commit's information after a version, oldest first."""
        actions = self._since(version)
        yield from ((number, action["commitInfo"]) for number, action in actions if "commitInfo" in action)

    def _since(self, version: int) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield the actions of kept log entries after a version, each with its entry's version."""
        folder = f"{self._storage.relative(self._files.uri)}/_delta_log"
        entries = sorted(self._storage.walk(folder, depth=1), key=lambda info: info.name)
        for info in entries:
            number, _, suffix = info.name.partition(".")
            if suffix == "json" and number.isdigit() and int(number) > version:
                lines = self._storage.read_bytes(info.relative).splitlines()
                yield from ((int(number), read_json(line)) for line in lines)

    def _reading(self) -> AbstractContextManager[None]:
        return self._files.reaching(
            "sink.unreadable", "cannot be read", "check whether it was moved or deleted"
        )

    def _open(self) -> Any:
        from deltalake import DeltaTable

        return DeltaTable(self._files.uri, storage_options=object_options(self._files.uri))
