"""Who else is there: upkeep, a reader downstream, a table of somebody else's, a person who changes things."""

from __future__ import annotations

import shutil
from collections import Counter
from datetime import timedelta
from pathlib import Path

from deltalake import DeltaTable, write_deltalake

from tests.model.actions import Ended
from tests.model.ground import Ground
from tests.model.looks import Wrong, equal, version
from tests.model.project import COLUMNS, COPIED, OUT, READER, TABLES, TRANSFORM


class Others(Ground):
    def upkeep(self, hours: float = 4) -> Ended:
        """After some hours; files stay for three."""
        # What a rewind would need is only kept for so long.
        self.marks.clear()
        self.slept = self.nested
        ended = self.actions.upkeep(timedelta(hours=hours))
        if hours > 3:
            self.kept_from = {path: version(self.actions.storage / path) for path in TABLES}
        return self._refused(ended, "upkeep") if ended.error is not None else ended

    def read_on(self) -> Ended:
        """The pipeline downstream."""
        if not self.reads:
            self.actions.sandbox.pipeline(
                "reader", READER, out_ddl=self.columns, transform_sql="SELECT * FROM made"
            )
            self.reads = True
        ended = self.actions.drain(name="reader")
        if ended.error is None:
            self.model.deliver()
            return ended
        return self._refused(ended, "read_on")

    def add_column(self) -> None:
        """In the middle of the columns."""
        self.columns = COLUMNS.replace("k STRING", "extra INT, k STRING")
        self.transform = TRANSFORM.replace("at, k", "at, 7 AS extra, k")
        self.sink.add_column("extra INT")
        self._write(self.model.live.version)

    def change_keys(self, keys: str) -> None:
        self.keys = keys
        self._write(self.model.live.version)

    def vacuum_by_hand(self) -> None:
        """As somebody does who wants his disk back."""
        table = DeltaTable(str(self.actions.storage / OUT))
        table.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
        self.kept_from[OUT] = table.version()

    # A pipeline over a table of somebody else's

    def deliver(self, *ids: int) -> None:
        """Rows for it, each call a version of the table."""
        import pyarrow as pa

        if not self.delivered:
            self.actions.sandbox.pipeline(
                "copied", COPIED, out_ddl="id BIGINT", transform_sql="SELECT id FROM raw"
            )
        self.delivered.update(ids)
        self.undelivered = True
        rows = pa.table({"id": pa.array(ids, pa.int64())})
        write_deltalake(str(self.actions.storage / "landing/raw"), rows, mode="append")

    def remake_source(self) -> None:
        """Taken away; the next row makes another of its name."""
        (self.actions.storage / "landing/raw").rename(self._old_source)
        self.delivered_before = Counter(self.delivered)
        self.actions.forget_tables()

    @property
    def _old_source(self) -> Path:
        return self.actions.storage / "landing/old"

    def bring_back(self) -> None:
        """The table as it was: what the refusal advises. The rows of the other one are gone with it."""
        assert self.delivered_before is not None
        shutil.rmtree(self.actions.storage / "landing/raw", ignore_errors=True)
        self._old_source.rename(self.actions.storage / "landing/raw")
        self.delivered, self.delivered_before = self.delivered_before, None
        self.undelivered = False
        self.actions.forget_tables()

    def copy(self) -> Ended:
        ended = self.actions.drain(name="copied")
        if ended.error is None and self.undelivered and not ended.ran:
            raise Wrong("rows of a table that was made again are hidden: the run says that nothing is new")
        if ended.error is None:
            self.undelivered = False
            rows = DeltaTable(str(self.actions.storage / "tables/copied")).to_pyarrow_table()
            found = Counter(rows.column("id").to_pylist())
            equal("rows of the copy", found, self.delivered)
            return ended
        return self._refused(ended, "copy")

    def read_once(self) -> None:
        """Downstream every row comes once, also behind a rewind; or somebody was told."""
        self.tainted = False
        self.read_on()
