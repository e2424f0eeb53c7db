"""Where Drawdown keeps its own files below a storage root; these paths are only written here.

Paths are relative to the storage root, with forward slashes.

    _drawdown/<pipeline>/checkpoint-<generation>/           Spark's checkpoint
                         carriers-<generation>/<source>/    event times that keep watermarks moving
                         schema-<generation>/<source>.ddl   columns that the first run has inferred
                         lineage-<generation>/columns.json  from which source columns each output column comes
                         arrivals-<generation>/<source>.json  how far notifications were read
                         set-aside/<source>.json            files that no run reads
                         staged/                            rows that wait for a publish
                         replays/<interval>/                rows of a replay that wait for its commit
                         quarantine/<decision>/             rows of the quarantine that go into a batch
                         snapshots/<time>/                  copies of the checkpoint
                         data_docs/                         pages of judged slices
                         scratch-<id>/                      of one run, removed by it
    _drawdown/.put-if-absent                                which each run on an object store tries to create
    quarantine/<pipeline>/                                  the table of rows that were set aside
"""

from __future__ import annotations

import re

OWN = "_drawdown"
QUARANTINE = "quarantine"
RESERVED = (OWN, QUARANTINE)
"""Top-level folders that a sink's path may not be in."""

PUT_IF_ABSENT = f"{OWN}/.put-if-absent"
"""A file that exists, and that no run can create again unless the storage is unsafe."""

_OWNER = re.compile(rf"{OWN}/([^/]+)/")


def home_of(pipeline: str) -> str:
    """Return the folder of everything that is kept for a pipeline."""
    return f"{OWN}/{pipeline}"


def quarantine_of(pipeline: str) -> str:
    """Return the table of a pipeline's quarantined rows."""
    return f"{QUARANTINE}/{pipeline}"


def checkpoint_of(pipeline: str, generation: int | str) -> str:
    """Return the checkpoint of a generation; `*` matches all generations."""
    return f"{home_of(pipeline)}/checkpoint-{generation}"


def carriers_of(pipeline: str, generation: int) -> str:
    """Return the folder that has a folder for each source with carriers."""
    return f"{home_of(pipeline)}/carriers-{generation}"


def schemas_of(pipeline: str, generation: int) -> str:
    """Return the folder with a DDL file for each source whose columns were inferred."""
    return f"{home_of(pipeline)}/schema-{generation}"


def column_lineage_of(pipeline: str, generation: int) -> str:
    """Return the folder with what is known of the output's columns."""
    return f"{home_of(pipeline)}/lineage-{generation}"


def arrivals_of(pipeline: str, generation: int) -> str:
    """Return the folder with what is kept of the notifications of each source that has any."""
    return f"{home_of(pipeline)}/arrivals-{generation}"


def generation_folders(pipeline: str, generation: int) -> tuple[str, ...]:
    """Return the folders that belong to one generation only."""
    kept = checkpoint_of, carriers_of, schemas_of, column_lineage_of, arrivals_of
    return tuple(each(pipeline, generation) for each in kept)


def set_aside_of(pipeline: str) -> str:
    """Return the folder that names, for each source, the files that no run reads."""
    return f"{home_of(pipeline)}/set-aside"


def staged_of(pipeline: str) -> str:
    """Return the folder of rows that wait apart from their table until a publish."""
    return f"{home_of(pipeline)}/staged"


def replay_folder(pipeline: str, interval: str) -> str:
    """Return the folder of a replay's rows until its commit; `interval`: the name of the interval."""
    return f"{home_of(pipeline)}/replays/{interval}"


def replayed_rows_of(pipeline: str, decision: str) -> str:
    """Return the folder of quarantined rows that a decision has put into a batch."""
    return f"{home_of(pipeline)}/quarantine/{decision}"


def snapshots_of(pipeline: str) -> str:
    """Return the folder of the checkpoint's copies, each named by its time."""
    return f"{home_of(pipeline)}/snapshots"


def data_docs_of(pipeline: str) -> str:
    """Return the folder of the pages of audited slices."""
    return f"{home_of(pipeline)}/data_docs"


def scratch_of(pipeline: str, id: str) -> str:
    """Return a temporary folder of one run."""
    return f"{home_of(pipeline)}/scratch-{id}"


def owner_of(path: str) -> str | None:
    """Return the pipeline to which a path belongs; None for other paths."""
    found = _OWNER.match(path)
    return found[1] if found else None
