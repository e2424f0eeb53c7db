"""``make demo``: three days of flights through the real line, then every table checked.

Exit code 0 when all tables and counts are what DuckDB makes of the raw data, 1 when one is not, 130 when
interrupted, and the error's own when something could not run.
"""

from __future__ import annotations

import signal
import sys
from types import FrameType

from rich.console import Console
from rich.markup import escape

from dev.demo.checks import compare_tables, cost_no_spark, unbalanced, wrong_counts
from dev.demo.data import days
from dev.demo.line import DagRun, Line, TaskStates
from dev.demo.oracle import Oracle
from dev.demo.report import comparison_table, print_differences, print_next, runs_table
from dev.demo.steps import Step, Steps
from drawdown.errors import DrawdownError
from drawdown.spec import load_project


def main() -> int:
    """Run the demo; returns the exit code."""
    console = Console()
    signal.signal(signal.SIGTERM, _as_interrupt)
    try:
        return _demo(console)
    except KeyboardInterrupt:
        console.print("\nInterrupted; broker, Airflow and Spark are stopped.")
        return 130
    except DrawdownError as error:
        console.print(f"[red]✗[/] {escape(str(error))}", highlight=False)
        return error.exit_code


def _demo(console: Console) -> int:
    steps = Steps(console)
    project = load_project()
    with Line(project.root, project.state_dir / "demo") as line:
        with steps.step("Start the Kafka broker"):
            line.start_broker()
        with steps.step("Start Airflow: api-server, scheduler, dag-processor"):
            line.start_airflow()
        with steps.step("Prepare the storage, the topic and the reference tables"):
            line.delivery.prepare()
            arriving = days()
        done = []
        for day in arriving:
            with steps.step(f"Day {day.number}, {day.date:%d %B %Y}: deliver, drain, audit, publish") as step:
                line.delivery.deliver(day)
                done.append(_run(line, step))
        with steps.step("A run with nothing new") as step:
            idle = _run(line, step)
        with steps.step("Stop Airflow and the broker"):
            line.stop()
        return _report(steps, line, done, idle)


def _run(line: Line, step: Step) -> DagRun:
    run = line.run(lambda states: step.say(_shown(states)))
    if run.state != "success":
        raise line.failure(run)
    return run


def _report(steps: Steps, line: Line, done: list[DagRun], idle: DagRun) -> int:
    console = steps.console
    with steps.step("Compare every table with DuckDB"), Oracle(line.copy) as oracle:
        comparisons = compare_tables(line.storage_root, oracle)
        wrong = wrong_counts(done, oracle)
    lost = unbalanced(done)
    console.print()
    for table in (runs_table(done, idle), comparison_table(comparisons)):
        console.print(table, "")
    print_differences(console, comparisons, wrong, lost)
    print_next(console, line)
    quiet = cost_no_spark(idle)
    if not quiet:
        console.print(f"[red]✗ The run with nothing new started Spark:[/] {escape(str(dict(idle.tasks)))}")
    right = quiet and not wrong and not lost and all(each.equal for each in comparisons)
    console.print("[green]✓ All equal[/]" if right else "[red]✗ Not equal[/]", f"in {steps.total:.0f} s")
    return 0 if right else 1


def _shown(states: TaskStates) -> str:
    """The tasks under way, or those done when none is."""
    running = [task for task, state in states.items() if state == "running"]
    done = [task for task, state in states.items() if state in ("success", "skipped")]
    return " ".join(running) if running else f"{len(done)} of {len(states)} tasks done"


def _as_interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
