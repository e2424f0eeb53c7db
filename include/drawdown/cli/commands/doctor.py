"""`drawdown doctor`: shows what this machine and project lack, with the commands that fix it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from drawdown.cli.arguments import Json
from drawdown.cli.screen import out, print_json, working

if TYPE_CHECKING:
    from drawdown.cli.doctor.finding import Check

_MARKS = {"ok": "[green]✓[/]", "warn": "[yellow]![/]", "fail": "[red]✗[/]"}
_CANNOT_RUN = 8


def doctor(
    as_json: Json = False,
) -> None:
    """Check Java, ports, jars, disk, storage, metastore, clocks, leftovers of crashed runs and clusters,
    temporary files, brokers, databases, Airflow's pool and connections.

    The exit code is 8 when something would stop a run; warnings do not count.
    """
    from drawdown.cli.doctor import examine

    with working("looking"):
        found = examine()
    if as_json:
        print_json([finding.as_dict() for finding in found])
    else:
        for finding in found:
            _show(finding)
    raise typer.Exit(_CANNOT_RUN if any(finding.level == "fail" for finding in found) else 0)


def _show(finding: Check) -> None:
    from rich.markup import escape

    out().print(f"{_MARKS[finding.level]} {finding.about:<10} {escape(finding.what)}")
    if finding.do:
        out().print(f"  {'':<10} → {finding.do}", markup=False)
