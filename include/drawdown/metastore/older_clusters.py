"""Records of clusters as programs before schema 0016 wrote them, by the key of a run, made instances."""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any


def as_instance(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the new record. The machines have the name that their programs were given then."""
    key = str(row["cluster_key"])
    readable = re.sub(r"[^a-z0-9]+", "-", key.lower())[:24].strip("-")
    digest = sha256(key.encode()).hexdigest()
    return {
        **{name: value for name, value in row.items() if name != "until"},
        "instance": digest[:12],
        "name": f"drawdown-{readable}-{digest[:10]}",
        "begun_at": row["until"],
        "up_by": row["until"],
        "deadline": row["until"],
        "state": "starting" if row["answer"] is None else "up",
        "tries": 0,
    }
