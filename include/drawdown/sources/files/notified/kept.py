"""What a generation keeps of a source's notifications: how far its topic was read, and which files wait.

The file is written by runs, under their lease. It may be lost at any time: the next run then lists all files.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from drawdown.layout import arrivals_of
from drawdown.storage import Storage
from drawdown.values.json_text import read_json


@dataclass(frozen=True)
class KeptArrivals:
    """From here on notifications tell everything.

    Attributes:
        about: topic, its id and the source's path; of another one nothing is known.
        offsets: next offset by partition, in decimal.
        read_until: the newest entry of the log of seen files when this was noted. A checkpoint that was
            rewound before it has forgotten files that are in no notification any more; every run lists
            until one has read all.
        waiting: files that were reported and not read yet, relative to the root of the source's storage.
        listed_ms: when all files were listed last, milliseconds since 1970 UTC.
    """

    about: Mapping[str, str]
    offsets: Mapping[str, int]
    read_until: int
    waiting: tuple[str, ...]
    listed_ms: int


def read_kept(storage: Storage, pipeline: str, generation: int, source: str) -> KeptArrivals | None:
    """Return what was kept; None when there is nothing, or nothing that can be read."""
    try:
        found: dict[str, Any] = read_json(storage.read_bytes(_file(pipeline, generation, source)))
        return KeptArrivals(
            about=dict(found["about"]),
            offsets={str(number): int(offset) for number, offset in found["offsets"].items()},
            read_until=int(found["read_until"]),
            waiting=tuple(map(str, found["waiting"])),
            listed_ms=int(found["listed_ms"]),
        )
    except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
        return None


def keep(storage: Storage, pipeline: str, generation: int, kept: Mapping[str, KeptArrivals]) -> None:
    """Replace what is kept of these sources."""
    for source, each in kept.items():
        content = json.dumps(asdict(each), indent=1)
        storage.write_atomic(_file(pipeline, generation, source), content.encode())


def _file(pipeline: str, generation: int, source: str) -> str:
    return f"{arrivals_of(pipeline, generation)}/{source}.json"
