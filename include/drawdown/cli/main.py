"""`drawdown`: the commands put together, and the one place where an error reaches the screen."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import traceback

from drawdown.cli.command import Commands
from drawdown.cli.commands import (
    backfill,
    checkpoint,
    cost,
    decide,
    doctor,
    init,
    jars,
    metastore,
    plan,
    quarantine,
    rebuild,
    remove,
    rename,
    run,
    runs,
    state,
    upkeep,
    validate,
    watch,
)
from drawdown.cli.commands import test as run_tests
from drawdown.cli.screen import show_error
from drawdown.errors import DrawdownError
from drawdown.versions import check_versions

_EXIT_CODES = {
    0: "done",
    1: "something nobody foresaw; for `test`: a case failed",
    2: "the command or a spec is wrong",
    3: "refused: it would break state or a sink",
    4: "busy: another run holds the lease",
    5: "a source, broker or sink cannot be reached or read",
    6: "the transform or its query failed",
    7: "the audit did not pass; nothing was published",
    8: "this machine lacks something: see `drawdown doctor`",
    130: "stopped by Ctrl-C (143: by SIGTERM)",
}

_HELP = "Structured Streaming as scheduled batch work: drain, audit, publish."
_EPILOG = "\n".join(["Exit codes", *(f"{code:>4}  {what}" for code, what in _EXIT_CODES.items())])

app = Commands(
    name="drawdown",
    help=_HELP,
    epilog=_EPILOG,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(init.init)
app.command()(validate.validate)
app.command()(plan.plan)
app.command("test")(run_tests.run_tests)
app.command()(run.run)
app.command()(watch.watch)
app.command()(backfill.backfill)
app.add_typer(rebuild.app, name="rebuild")
app.command()(runs.runs)
app.command()(cost.cost)
app.command()(state.state)
app.add_typer(checkpoint.app, name="checkpoint")
app.add_typer(metastore.app, name="metastore")
app.command()(decide.release)
app.command()(decide.discard)
app.command()(rename.rename)
app.command()(remove.remove)
app.add_typer(quarantine.app, name="quarantine")
app.command()(upkeep.upkeep)
app.add_typer(jars.app, name="jars")
app.command()(doctor.doctor)


def main() -> None:
    """The entry point; ends the process with one of the documented exit codes."""
    try:
        check_versions()
        app()
    except DrawdownError as error:
        show_error(error)
        sys.exit(error.exit_code)
    except Exception as bug:  # noqa: BLE001  a user meets an error with an id, never a stack trace
        show_error(_unforeseen(bug))
        sys.exit(1)
    finally:
        # What users' code says while Python ends (atexit, threads it has left) is no answer either.
        with contextlib.suppress(BrokenPipeError):
            sys.stdout.flush()
        sys.stdout = sys.stderr


def _unforeseen(bug: Exception) -> DrawdownError:
    """The error for a bug of ours; the trace goes into a private file that can be sent along."""
    descriptor, path = tempfile.mkstemp(prefix="drawdown-", suffix=".txt")
    with os.fdopen(descriptor, "w") as file:
        file.write("".join(traceback.format_exception(bug)))
    first = (str(bug).strip().splitlines() or [""])[0]
    return DrawdownError(
        "cli.unexpected",
        f"{type(bug).__name__}: {first}",
        where=" ".join(sys.argv[:2]),
        do=f"this is a bug of Drawdown's: report it with {path}",
    )
