"""The `drawdown` command: registers all commands and prints every error."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import tempfile
import traceback
from typing import ClassVar, NoReturn

from drawdown.cli.command import Commands, LazyGroup, Verb
from drawdown.cli.output import open_standard_streams, output_to
from drawdown.cli.screen import show_error, show_refusal
from drawdown.errors import DrawdownError, MachineError
from drawdown.versions import check_versions

_EXIT_CODES = {
    0: "done",
    1: "unexpected error; for `test`: a case failed",
    2: "the command or a spec is wrong",
    3: "refused: it would break state or a sink",
    4: "busy: another run holds the lease",
    5: "a source, broker or sink cannot be reached or read",
    6: "the transform or its query failed",
    7: "the audit did not pass; nothing was published",
    8: "this machine lacks something: see `drawdown doctor`",
    130: "stopped by Ctrl-C (143: by SIGTERM)",
}

_OBJECTS_BEFORE_A_COLLECTION = 50_000
"""Python's 700 would spend a sixth of a short command's time on the modules that it imports."""
_HELP = "Structured Streaming as scheduled batch work: drain, audit, publish."
_EPILOG = "\n".join(
    [
        "Exit codes",
        *(f"{code:>4}  {what}" for code, what in _EXIT_CODES.items()),
        "The id of an error: drawdown explain ID",
    ]
)


class Drawdown(LazyGroup):
    """All commands, in the order of `drawdown --help`."""

    places: ClassVar = {
        "init": Verb("init", "init", "Make a working pipeline, from a sample of your data or an example."),
        "validate": Verb("validate", "validate", "Check specs, all or some. Touches nothing."),
        "plan": Verb("plan", "plan", "Say what the next run would refuse, change, keep in state and read."),
        "test": Verb("test", "run_tests", "Run the test cases of pipelines."),
        "run": Verb("run", "run", "Drain, audit and publish pipelines now."),
        "watch": Verb("watch", "watch", "Run a pipeline until Ctrl-C."),
        "backfill": Verb("backfill", "backfill", "Compute intervals of the output again and replace them."),
        "rebuild": Verb("decisions.rebuild", "app", "Compute the output again and swap it in."),
        "status": Verb("status", "status", "Show how all pipelines stand, worst first."),
        "runs": Verb("runs", "runs", "List runs, or show one in full."),
        "logs": Verb("logs", "logs", "Print the log of a run, or say where it is."),
        "lineage": Verb("lineage", "lineage", "Show which pipelines and tables feed which."),
        "cost": Verb("cost", "cost", "Show what runs asked for, used and cost."),
        "state": Verb("maintenance.state", "state", "Read the state of a pipeline."),
        "checkpoint": Verb("maintenance.checkpoint", "app", "Show and verify a checkpoint; ways back."),
        "metastore": Verb("maintenance.metastore", "app", "Bring the metastore to this version's schema."),
        "clusters": Verb(
            "maintenance.clusters", "app", "Clusters of kind commands: list, end, say they are gone."
        ),
        "release": Verb("decisions.decide", "release", "Publish a held slice as it is."),
        "discard": Verb("decisions.decide", "discard", "Drop a held slice."),
        "rename": Verb("maintenance.rename", "rename", "Keep everything of a pipeline under its new name."),
        "remove": Verb("maintenance.remove", "remove", "Delete what a removed folder has left."),
        "quarantine": Verb("decisions.quarantine", "app", "Rows set aside: list, show, replay, drop."),
        "upkeep": Verb("maintenance.upkeep", "upkeep", "Compact tables; remove files and records."),
        "jars": Verb("jars", "app", "Fetch the jars that Spark needs."),
        "explain": Verb("explain", "explain", "Say what an error id means and what to do about it."),
        "doctor": Verb("doctor", "doctor", "Say what this machine and project lack, with the fix."),
    }


app = Commands(
    name="drawdown",
    cls=Drawdown,
    help=_HELP,
    epilog=_EPILOG,
    add_completion=True,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _drawdown() -> None:
    """A group, also where no command is added beside the table."""


def main() -> None:
    """Run the CLI; ends the process with one of the documented exit codes."""
    gc.set_threshold(_OBJECTS_BEFORE_A_COLLECTION)
    open_standard_streams()
    sys.stdout = output_to(sys.stdout)
    try:
        check_versions()
        app()
    except DrawdownError as error:
        _end(error)
    except BrokenPipeError:  # whoever read the answer has gone, and wants no more
        sys.exit(1)
    except Exception as bug:  # noqa: BLE001  a user meets an error with an id, never a stack trace
        _end(_unforeseen(bug))
    finally:
        # Output of user code while Python exits (atexit, leftover threads) is not part of the answer either.
        with contextlib.suppress(OSError, DrawdownError):
            sys.stdout.flush()
        sys.stdout = sys.stderr


def _end(error: DrawdownError) -> NoReturn:
    # Where neither can be written, the exit code has to say it.
    with contextlib.suppress(OSError):
        show_error(error)
    with contextlib.suppress(OSError, DrawdownError):
        show_refusal(error)
    sys.exit(error.exit_code)


def _without_spark(bug: Exception) -> DrawdownError | None:
    """Return the error for a call to a JVM that has ended, outside any run; None for another exception."""
    from drawdown.spark.gateway import is_cut_off

    if not is_cut_off(bug):
        return None
    return MachineError(
        "spark.gone",
        "Spark's JVM ended while the command used it; it was killed, or ran out of memory",
        where=" ".join(sys.argv[:2]),
        do="run the command again; if it happens again, check the machine's log or raise `driver_memory` of"
        " the cluster in include/project.yaml",
    )


def _unforeseen(bug: Exception) -> DrawdownError:
    """Return the error for an internal bug; the stack trace goes into a private file for the report."""
    if "py4j" in sys.modules and (gone := _without_spark(bug)) is not None:
        return gone
    descriptor, path = tempfile.mkstemp(prefix="drawdown-", suffix=".txt")
    with os.fdopen(descriptor, "w") as file:
        file.write("".join(traceback.format_exception(bug)))
    first = (str(bug).strip().splitlines() or [""])[0]
    return DrawdownError(
        "cli.unexpected",
        f"{type(bug).__name__}: {first}",
        where=" ".join(sys.argv[:2]),
        do=f"this is a bug in Drawdown: report it with {path}",
    )
