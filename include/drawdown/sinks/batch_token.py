"""The token of a batch, by which a user's sink recognises a batch that it gets again."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class BatchToken:
    """The same batch has the same token in every attempt, and no other batch of any pipeline has it.

    Attributes:
        generation: the checkpoint's; batch ids of a new generation start from 0 again.
        batch_id: Spark's; it grows by one from batch to batch.
    """

    pipeline: str
    generation: int
    batch_id: int

    @property
    def app_id(self) -> str:
        """Return an id that all batches of a generation share: a ledger of your own needs one row per id."""
        return f"drawdown/{self.pipeline}/{self.generation}/function"

    @property
    def delta_options(self) -> dict[str, str]:
        """Return ``txnAppId`` and ``txnVersion``, by which Delta skips a write that the table already has.

        Use them for one write per table: Delta would skip a second write with the same token.
        """
        return {"txnAppId": self.app_id, "txnVersion": str(self.batch_id)}

    def __str__(self) -> str:
        return f"{self.pipeline}/{self.generation}/{self.batch_id}"
