"""The list of faults, the tests that carry their ids, and the page made of both."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import yaml

from tests.support.collected import TESTS
from tests.support.collected import collected as collected_marks
from tests.support.kill_matrix import KINDS

HERE = Path(__file__).parent
PAGE = TESTS.parent / "docs" / "faults.md"
STORE = TESTS.parent / ".drawdown" / "fault-results.json"
SINKS = (*dict.fromkeys(kind.sink for kind in KINDS.values()), "function")

_INTRODUCTION = """\
# Faults

Made by `make test-all` from `tests/faults/rows.yaml` and the results of the tests that carry the ids; do not
edit. Each fault is injected for real, and what follows is compared with a control that never failed. A cell
is the result on that sink; it is empty where the fault does not touch the sink or
no test shows it there. A part of the tests may be run again (`pytest --faults-page` with
their names): the others stay as they were.
"""


@dataclass(frozen=True)
class Fault:
    """A row of the matrix: what happens, and what must be true afterwards."""

    id: str
    fault: str
    must: str


@dataclass(frozen=True)
class Result:
    """What came of one test, and on which day (UTC)."""

    outcome: str
    day: str


@dataclass(frozen=True)
class Mark:
    """One `fault` mark of one collected test."""

    id: str
    sink: str
    test: str
    full: bool

    @property
    def file(self) -> str:
        return self.test.split("::")[0]


def rows() -> dict[str, Fault]:
    """By id, in the order of the list."""
    return {row["id"]: Fault(**row) for row in yaml.safe_load((HERE / "rows.yaml").read_text())}


def collected() -> list[Mark]:
    """Every mark of every test there is, those of `make test-all` too."""
    return [Mark(*each.args, test=each.test, full=each.full) for each in collected_marks("fault")]


def remembered(outcomes: Mapping[str, str], store: Path = STORE) -> dict[str, Result]:
    """Results of this run and, for tests that were not in it, of earlier ones; kept for the next."""
    earlier = json.loads(store.read_text()) if store.exists() else {}
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    results = {test: Result(**result) for test, result in earlier.items()}
    results |= {test: Result(outcome, today) for test, outcome in outcomes.items()}
    store.parent.mkdir(exist_ok=True)
    store.write_text(json.dumps({test: asdict(result) for test, result in results.items()}, indent=1))
    return results


def write_page(marks: Iterable[Mark], results: Mapping[str, Result], page: Path = PAGE) -> None:
    """docs/faults.md: id by sink, then what must happen and the tests that show it.

    Args:
        results: by test, as pytest names both; a test that is not in it was not run.
    """
    not_run = Result("not run", "")
    days: set[str] = set()
    by_cell: dict[tuple[str, str], list[str]] = defaultdict(list)
    files: dict[str, set[str]] = defaultdict(set)
    for mark in marks:
        result = results.get(mark.test, not_run)
        by_cell[mark.id, mark.sink].append(result.outcome)
        days |= {result.day} - {""}
        files[mark.id].add(mark.file)
    lines = [_INTRODUCTION, f"Run on {' and '.join(sorted(days))}.", ""]
    lines += [f"| id | fault | {' | '.join(SINKS)} |", f"|---|---|{'---|' * len(SINKS)}"]
    for fault in rows().values():
        cells = [_cell(by_cell[fault.id, sink]) for sink in SINKS]
        lines.append(f"| {fault.id} | {fault.fault} | {' | '.join(cells)} |")
    lines += ["", "| id | what must happen | shown by |", "|---|---|---|"]
    for fault in rows().values():
        shown = ", ".join(f"[{Path(file).stem}](../{file})" for file in sorted(files[fault.id]))
        lines.append(f"| {fault.id} | {fault.must} | {shown or 'none yet'} |")
    page.write_text("\n".join(lines) + "\n")


def _cell(outcomes: list[str]) -> str:
    """`passed` only when every test of the cell has."""
    kinds = sorted(set(outcomes))
    if not kinds:
        return ""
    if len(kinds) == 1:
        number = f" ({len(outcomes)})" if len(outcomes) > 1 else ""
        return f"{kinds[0]}{number}"
    return ", ".join(f"{outcomes.count(kind)} {kind}" for kind in kinds)
