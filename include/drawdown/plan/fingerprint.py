"""The fingerprint: the parts of a spec recorded with a checkpoint, so that the next run sees changes.

changes.py defines what a change to each part means. The query adds what only the analysed plan shows:
``source_order``, ``state.operators``, ``state.kept`` and ``sink.schema``; and a run adds ``sink.identity``,
``versions`` and ``state.formats``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from drawdown.metastore.records import FINGERPRINT_FORMAT
from drawdown.spec import Pipeline, Source

_LOOKED_AT = "looked_at"
"""Key of a checkpoint's fingerprint: a changed spec that a run found to fit, with no batch under it yet."""

# Which records a source reads.
_IDENTITY_OPTIONS = ("subscribe", "subscribePattern", "assign")


def spec_fingerprint(pipeline: Pipeline) -> dict[str, Any]:
    """Return the part that follows from the spec alone, as flat keys and JSON-ready values.

    ``sources.NAME`` stands for every streaming source, so that adding or removing one is a change; any other
    key that an older checkpoint lacks is unknown there, not changed.
    """
    frozen: dict[str, Any] = {}
    exactly_once = ", exactly once" if pipeline.sink.transactional else ""
    for name, source in pipeline.streaming_sources.items():
        frozen |= {f"sources.{name}": _identity(source), **_reading(f"sources.{name}", source)}
    return {
        "format": FINGERPRINT_FORMAT,
        **frozen,
        "transform": _digest(pipeline.transform_text),
        "sink": f"{pipeline.sink.format} {pipeline.sink.target}{exactly_once}",
        "sink.name": pipeline.name_in_sink,
        "sink.mode": pipeline.sink.mode,
        "sink.keys": list(pipeline.sink.keys),
        "sink.options": dict(pipeline.sink.options),
        "state.provider": pipeline.state.provider,
        "state.partitions": pipeline.state.partitions,
        "state.options": dict(pipeline.state.options),
        "conf": dict(pipeline.conf),
        "watermark_policy": pipeline.watermark_policy,
        "time_zone": "UTC",
    }


def looked_at(before: Mapping[str, Any], spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the checkpoint's fingerprint with the note that a run has compared this spec with it."""
    return {**before, _LOOKED_AT: _digest(json.dumps(spec, sort_keys=True))}


def is_looked_at(before: Mapping[str, Any], spec: Mapping[str, Any]) -> bool:
    """Whether `looked_at` has noted this very spec."""
    return looked_at(before, spec) == before


def _identity(source: Source) -> str:
    what = [f"{k}={source.options[k]}" for k in _IDENTITY_OPTIONS if k in source.options]
    path = f"{source.storage}:{source.path}" if source.storage else source.path
    return " ".join([source.format, *([path] if path else []), *what])


def _reading(key: str, source: Source) -> dict[str, Any]:
    mark = source.watermark
    return {
        f"{key}.options": {k: v for k, v in source.options.items() if k not in _IDENTITY_OPTIONS},
        f"{key}.schema": source.schema_ddl and " ".join(source.schema_ddl.split()),
        f"{key}.watermark": mark and f"{mark.column} {mark.delay.text}",
    }


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
