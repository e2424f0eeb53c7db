"""Rows that end a run: malformed ones and broken rules, where the spec says fail."""

from __future__ import annotations

import json
from collections.abc import Mapping

from drawdown.errors import SourceError, TransformError
from drawdown.rows.boundary import Boundary, Observed
from drawdown.spec import Pipeline


def refuse_rows(
    pipeline: Pipeline, boundaries: Mapping[str, Boundary], observed: Mapping[str, Observed]
) -> None:
    """Look at what a batch, or a replay, showed at each source's boundary.

    Raises:
        SourceError: ``source.malformed``. TransformError: ``rule.failed``.
    """
    for name, seen in observed.items():
        where = f"pipeline {pipeline.name}, source {name}"
        if seen.malformed and pipeline.sources[name].malformed == "fail":
            raise SourceError(
                "source.malformed",
                f"{seen.malformed} malformed record(s){_example(seen, pipeline)}",
                where=where,
                do="fix the data, or set `malformed: quarantine` to put such records aside",
            )
        for rule in boundaries[name].rules:
            if rule.on_fail == "fail" and seen.by_rule[rule.name]:
                raise TransformError(
                    "rule.failed",
                    f"{seen.by_rule[rule.name]} row(s) break the rule {rule.name}: {rule.check}",
                    where=where,
                    do="fix the data or the rule, or set `on_fail: quarantine` to put such rows aside",
                )


def _example(seen: Observed, pipeline: Pipeline) -> str:
    """One of the records, of it what may be shown: also of its text, which is a column."""
    record = json.loads(seen.sample_malformed) if seen.sample_malformed else {}
    shown = pipeline.sample_gate.row(record)
    return f", for example {json.dumps(shown, ensure_ascii=False)}" if shown else ""
