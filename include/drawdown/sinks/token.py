"""The token of a batch: what a user's sink needs to be written once although it is called again."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class BatchToken:
    """The same batch has the same token in every attempt, and no other batch of any pipeline has it.

    Attributes:
        generation: of the checkpoint; batch ids of a new one start from 0 again.
        batch_id: Spark's; it grows by one from batch to batch.
    """

    pipeline: str
    generation: int
    batch_id: int

    @property
    def app_id(self) -> str:
        """The same for all batches of a generation: what a ledger of your own has one row for."""
        return f"drawdown/{self.pipeline}/{self.generation}/function"

    @property
    def delta_options(self) -> dict[str, str]:
        """``txnAppId`` and ``txnVersion``, by which Delta skips a write that a table has seen.

        One write per table: a second one with the same token would be skipped as well.
        """
        return {"txnAppId": self.app_id, "txnVersion": str(self.batch_id)}

    def __str__(self) -> str:
        return f"{self.pipeline}/{self.generation}/{self.batch_id}"
