"""Avro schemas that are made to be large."""

from __future__ import annotations

import json


def doubling(levels: int) -> str:
    """Return a schema of which each record names the one within it twice: 2 by its levels fields."""
    schema: dict[str, object] = {"type": "record", "name": "R0", "fields": [{"name": "a", "type": "int"}]}
    for level in range(1, levels):
        fields = [{"name": "a", "type": schema}, {"name": "b", "type": f"R{level - 1}"}]
        schema = {"type": "record", "name": f"R{level}", "fields": fields}
    return json.dumps(schema)
