"""`drawdown test`: a pipeline's own cases, waves of input and the rows expected after each."""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from drawdown.cli.chosen import chosen
from drawdown.cli.screen import children_write_to, err, out, print_json, show_error

if TYPE_CHECKING:
    from drawdown.cli.cases.case import Case
    from drawdown.cli.cases.rows import Difference, Row
    from drawdown.cli.cases.running import Result

_SHOWN = 10
"""Rows of a difference that are printed."""


def run_tests(
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", show_default=False)] = None,
    every: Annotated[bool, typer.Option("--all", help="All pipelines of the project.")] = False,
    case: Annotated[str | None, typer.Option(help="Only the case of this name.", show_default=False)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")] = False,
) -> None:
    """Run the test cases of pipelines: each wave arrives, is drained, and the tables are compared.

    The exit code is 1 when a case did not pass. Nothing of the project's storage or metastore is touched.
    """
    from drawdown.cli.cases.case import load_cases
    from drawdown.cli.cases.running import run_cases
    from drawdown.cli.interrupt import interruptibly
    from drawdown.spec import load_project

    project = load_project()
    cases = [found for each in chosen(project, names or [], every=every) for found in load_cases(each, case)]
    results: list[Result] = []
    stop = threading.Event()

    def work() -> None:
        for result in run_cases(project, cases, _begin, stop):
            results.append(result)
            if not as_json:
                _show(result)

    with children_write_to(project.state_dir / "logs" / "spark.log"):
        signal = interruptibly(work, stop, err().print, sys.stderr.flush)
    if as_json:
        print_json([_values(result) for result in results])
    if signal is not None:
        raise typer.Exit(128 + signal)
    raise typer.Exit(0 if all(result.passed for result in results) else 1)


def _begin(case: Case) -> None:
    err().print(f"[dim]… {case.pipeline.name}/{case.name}[/]")


def _show(result: Result) -> None:
    mark = "[green]✓[/]" if result.passed else "[red]✗[/]"
    waves = f"{result.waves} wave{'s' if result.waves != 1 else ''}"
    out().print(f"{mark} {result.pipeline}/{result.case}: {waves}, [dim]{result.seconds:.1f} s[/]")
    for found in result.differences:
        out().print(f"  after wave {result.waves} the {found.table} differs ({', '.join(found.columns)}):")
        _show_rows(found.missing, "missing", "-")
        _show_rows(found.unexpected, "unexpected", "+")
    if result.error is not None:
        show_error(result.error)


def _show_rows(rows: Sequence[Row], what: str, sign: str) -> None:
    for row in rows[:_SHOWN]:
        out().print(f"    {sign} {what}: {', '.join('NULL' if v is None else v for v in row)}", markup=False)
    if len(rows) > _SHOWN:
        out().print(f"    {sign} and {len(rows) - _SHOWN} more {what}", markup=False)


def _values(result: Result) -> dict[str, Any]:
    def rows(found: Difference) -> dict[str, Any]:
        return {
            "table": found.table,
            "columns": found.columns,
            "missing": found.missing,
            "unexpected": found.unexpected,
        }

    return {
        "pipeline": result.pipeline,
        "case": result.case,
        "passed": result.passed,
        "waves": result.waves,
        "seconds": round(result.seconds, 3),
        "differences": [rows(found) for found in result.differences],
        "error": result.error and result.error.as_dict(),
    }
