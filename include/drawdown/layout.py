"""Where Drawdown keeps its own files below a storage root: each such path is spelled here, and only here.

Paths are relative to the storage root, with forward slashes.

    _drawdown/<pipeline>/checkpoint-<generation>/           Spark's checkpoint
                         carriers-<generation>/<source>/    event times that keep watermarks moving
                         schema-<generation>/<source>.ddl   columns that the first run has inferred
                         staged/                            rows that wait for a publish
                         replays/<interval>/                rows of a replay that wait for its commit
                         quarantine/<decision>/             rows of the quarantine that go into a batch
                         snapshots/<time>/                  copies of the checkpoint
                         data_docs/                         pages of judged slices
                         scratch-<id>/                      of one run, removed by it
    quarantine/<pipeline>/                                  the table of rows that were set aside
"""

from __future__ import annotations

import re

OWN = "_drawdown"
QUARANTINE = "quarantine"
RESERVED = (OWN, QUARANTINE)
"""First folders of a path that no sink may have."""

_OWNER = re.compile(rf"{OWN}/([^/]+)/")


def home_of(pipeline: str) -> str:
    """The folder of all that is kept for a pipeline."""
    return f"{OWN}/{pipeline}"


def quarantine_of(pipeline: str) -> str:
    """The table of its rows that were set aside."""
    return f"{QUARANTINE}/{pipeline}"


def checkpoint_of(pipeline: str, generation: int | str) -> str:
    """The checkpoint of a generation; `*` stands for all of them."""
    return f"{home_of(pipeline)}/checkpoint-{generation}"


def carriers_of(pipeline: str, generation: int) -> str:
    """The folder with one folder a source that has carriers."""
    return f"{home_of(pipeline)}/carriers-{generation}"


def schemas_of(pipeline: str, generation: int) -> str:
    """The folder with one DDL file a source whose columns were inferred."""
    return f"{home_of(pipeline)}/schema-{generation}"


def generation_folders(pipeline: str, generation: int) -> tuple[str, ...]:
    """All that goes with one generation and no other."""
    kept = checkpoint_of, carriers_of, schemas_of
    return tuple(each(pipeline, generation) for each in kept)


def staged_of(pipeline: str) -> str:
    """Rows that wait apart from their table until a publish has taken them there."""
    return f"{home_of(pipeline)}/staged"


def replay_folder(pipeline: str, interval: str) -> str:
    """The rows of a replay, until its commit; `interval`: the name of one."""
    return f"{home_of(pipeline)}/replays/{interval}"


def replayed_rows_of(pipeline: str, decision: str) -> str:
    """Rows of the quarantine that a decision has put into a batch."""
    return f"{home_of(pipeline)}/quarantine/{decision}"


def snapshots_of(pipeline: str) -> str:
    """The folder of the copies of its checkpoint, each named by its time."""
    return f"{home_of(pipeline)}/snapshots"


def data_docs_of(pipeline: str) -> str:
    """The pages of its judged slices."""
    return f"{home_of(pipeline)}/data_docs"


def scratch_of(pipeline: str, id: str) -> str:
    """A folder of one run."""
    return f"{home_of(pipeline)}/scratch-{id}"


def owner_of(path: str) -> str | None:
    """The pipeline for which a path is kept; None when it is none of these."""
    found = _OWNER.match(path)
    return found[1] if found else None
