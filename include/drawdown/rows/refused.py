"""Rows that end a run: malformed ones and broken rules, where the spec says fail."""

from __future__ import annotations

import json
from collections.abc import Mapping

from drawdown.errors import SourceError, TransformError
from drawdown.rows.row_fates import Boundary, Observed
from drawdown.spec import Pipeline
from drawdown.values.json_text import read_json
from drawdown.values.text import counted


def refuse_rows(
    pipeline: Pipeline, boundaries: Mapping[str, Boundary], observed: Mapping[str, Observed]
) -> None:
    """Raise if the counts of a batch or replay include rows that end the run.

    Raises:
        SourceError: ``source.malformed``. TransformError: ``rule.failed``.
    """
    for name, seen in observed.items():
        where = f"pipeline {pipeline.name}, source {name}"
        if seen.malformed and pipeline.sources[name].malformed == "fail":
            raise SourceError(
                "source.malformed",
                f"{counted(seen.malformed, 'malformed record')}{_example(seen, pipeline)}",
                where=where,
                do="fix the data, or set `malformed: quarantine` to quarantine these records",
            )
        for rule in boundaries[name].rules:
            if rule.on_fail == "fail" and seen.by_rule[rule.name]:
                raise TransformError(
                    "rule.failed",
                    f"{counted(seen.by_rule[rule.name], 'row')} against the rule {rule.name}: {rule.check}",
                    where=where,
                    do="fix the data or the rule, or set `on_fail: quarantine` to quarantine these rows",
                )


def _example(seen: Observed, pipeline: Pipeline) -> str:
    """Return one of the records as text, with only the columns that may be shown."""
    record = read_json(seen.sample_malformed) if seen.sample_malformed else {}
    shown = pipeline.sample_gate.row(record)
    return f", for example {json.dumps(shown, ensure_ascii=False)}" if shown else ""
