"""`drawdown test`: runs a pipeline's test cases: waves of input and the rows expected after each."""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from drawdown.cli.arguments import Json, Names
from drawdown.cli.chosen import chosen
from drawdown.cli.interrupt import interruptibly
from drawdown.cli.screen import children_write_to, err, out, print_json, show_error
from drawdown.errors import SpecError
from drawdown.spec import load_project
from drawdown.testing.cases.case import load_cases

if TYPE_CHECKING:
    from drawdown.testing.cases.case_rows import Difference
    from drawdown.testing.cases.running import Result


def run_tests(
    names: Names = None,
    every: Annotated[bool, typer.Option("--all", help="All pipelines of the project.")] = False,
    case: Annotated[
        str | None, typer.Option(help="Only the case with this name.", show_default=False)
    ] = None,
    crash: Annotated[
        bool, typer.Option("--crash", help="Kill each wave's drain at every fault point, then continue.")
    ] = False,
    at: Annotated[
        list[str] | None,
        typer.Option(
            help="With --crash: only this point, for example 'after batch.note'.", show_default=False
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Run the test cases of pipelines: each wave arrives, is drained, and the tables are compared.

    The exit code is 1 when a case did not pass, or when --crash did not kill where it should.
    The project's storage and metastore are not touched.
    """
    from drawdown.testing.cases.crash import crash_cases, points, refuse_unreached
    from drawdown.testing.cases.running import run_cases

    if at and not crash:
        raise SpecError("test.at", "`--at` needs `--crash`", where="the command", do="add --crash")
    struck = points(at or [])
    project = load_project()
    cases = [found for each in chosen(project, names or [], every=every) for found in load_cases(each, case)]
    results: list[Result] = []
    stop = threading.Event()

    def work() -> None:
        ran = (
            crash_cases(project, cases, struck, _begin, stop)
            if crash
            else run_cases(project, cases, _begin, stop)
        )
        for result in ran:
            results.append(result)
            if not as_json:
                _show(result)

    with children_write_to(project.state_dir / "logs" / "spark.log"):
        signal = interruptibly(work, stop, err().print, sys.stderr.flush)
    if as_json:
        print_json([_values(result) for result in results])
    elif crash:
        _show_summary(results)
    if signal is not None:
        raise typer.Exit(128 + signal)
    if crash:
        refuse_unreached(results, named=at or [])
    if not all(result.passed for result in results):
        raise typer.Exit(1)


def _begin(what: str) -> None:
    err().print(f"[dim]… {what}[/]")


def _show(result: Result) -> None:
    from drawdown.testing.cases.report import difference_lines

    mark = "[green]✓[/]" if result.passed else "[red]✗[/]"
    went = f"{result.waves} wave{'s' if result.waves != 1 else ''}"
    if result.point:
        went = f"killed {result.point} in {result.kills} of {went}"
        if result.passed and not result.kills:
            mark, went = "[dim]·[/]", f"not reached: {result.point}"
    out().print(f"{mark} {result.pipeline}/{result.case}: {went}, [dim]{result.seconds:.1f} s[/]")
    for line in difference_lines(result):
        out().print(f"  {line}", markup=False, soft_wrap=True)
    if result.error is not None:
        show_error(result.error)


def _show_summary(results: Sequence[Result]) -> None:
    passed = [result for result in results if result.passed]
    died = sum(bool(result.kills) for result in passed)
    differ = len(results) - len(passed)
    out().print(f"{died} recovered, {len(passed) - died} not reached, {differ} differ")


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
        **({"point": result.point, "kills": result.kills} if result.point else {}),
    }
