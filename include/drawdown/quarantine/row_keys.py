"""The keys by which decisions name quarantined rows: a hash of everything that distinguishes a row.

A row's key never changes, because decision files contain it. Most keys are computed in Arrow, which is many
times faster; only `_key` handles rows whose text JSON would escape.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

IDENTIFYING = (
    "reasons", "source", "payload", "file", "topic", "partition", "offset", "generation", "batch_id",
    "run_id", "raw",
)  # fmt: skip
_TEXTS = ("source", "payload", "file", "topic", "run_id")
_PLAIN = "^[ -~]*$"
_BARE = r"^[ !#-\[\]-~]+$"
"""The same without quotation marks and backslashes, and not empty."""


def keys_of(content: pa.Table) -> list[str]:
    """Of each row, in their order; columns of IDENTIFYING that the table lacks are NULL."""
    import pyarrow as pa

    for name in set(IDENTIFYING) - set(content.column_names):
        content = content.append_column(name, pa.nulls(content.num_rows))
    numbers = {"partition", "offset", "generation", "batch_id"}
    kinds = {"reasons": pa.list_(pa.string()), "raw": pa.binary()}
    of = {name: kinds.get(name, pa.int64() if name in numbers else pa.string()) for name in IDENTIFYING}
    # Delta's reader gives views of text, which few of Arrow's functions take.
    identifying = content.select(list(IDENTIFYING)).cast(pa.schema(list(of.items())))
    return [key for batch in identifying.to_batches() for key in _keys(batch)]


def _keys(batch: pa.RecordBatch) -> list[str]:
    import pyarrow as pa
    import pyarrow.compute as pc

    reasons = batch["reasons"]
    texts = {name: batch[name] for name in _TEXTS}
    fits = [pc.match_substring_regex(column, _PLAIN).fill_null(True) for column in texts.values()]
    plain = pc.match_substring_regex(pc.binary_join(reasons, ","), _BARE).fill_null(False)
    for each in (*fits, pc.is_null(batch["raw"])):
        plain = pc.and_(plain, each)
    shown = {name: _in_json(column) for name, column in texts.items()}
    shown["reasons"] = pc.binary_join_element_wise('["', pc.binary_join(reasons, '", "'), '"]', "")
    parts = [
        shown[name] if name in shown else batch[name].cast(pa.string()).fill_null("null")
        for name in IDENTIFYING
        if name != "raw"
    ]
    identifying = pc.binary_join_element_wise(*parts, ", ", null_handling="replace")
    identifying = pc.binary_join_element_wise("[", identifying, "]", "").cast(pa.binary())
    hashed = hashlib.sha256
    keys = [hashed(identity).hexdigest() for identity in identifying.to_pylist()]
    others = pc.indices_nonzero(pc.invert(plain))
    for index, values in zip(others.to_pylist(), batch.take(others).to_pylist(), strict=True):
        keys[index] = _key(values)
    return keys


def _in_json(text: pa.Array) -> pa.Array:
    import pyarrow.compute as pc

    escaped = pc.replace_substring(pc.replace_substring(text, "\\", "\\\\"), '"', '\\"')
    return pc.binary_join_element_wise('"', escaped, '"', "").fill_null("null")


def _key(values: Mapping[str, Any]) -> str:
    # Records of other bytes may look the same as text.
    bytes_of = [] if values["raw"] is None else [values["raw"].hex()]
    identifying = [values["reasons"] or [], *(values[name] for name in IDENTIFYING[1:-1]), *bytes_of]
    return hashlib.sha256(json.dumps(identifying).encode()).hexdigest()
