"""What to do about a pipeline now: one sentence, and the place where it is done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from drawdown.fleet.standing import State
from drawdown.observe.figures import Seen

Place = Literal["", "decide", "run", "log", "dag", "pipeline", "quarantine"]
"""Airflow's pages of a log (log) and of a DAG (dag); the others are our own."""


@dataclass(frozen=True)
class NextStep:
    """What somebody should do.

    Attributes:
        sentence: empty where nothing needs anybody.
        place: where that is done in Airflow.
        command: the same on the command line.
    """

    sentence: str = ""
    place: Place = ""
    command: str = ""


_SENTENCES: dict[State, tuple[str, Place]] = {
    "failed": ("Read why the newest run failed; the next run completes its work.", "run"),
    "refused": ("Nothing was touched. Do what the refusal asks for, then start a run.", "run"),
    "retention at risk": ("Start a run now: what it does not read in time is lost.", "dag"),
    "held": ("Look at the held rows and release or discard them.", "decide"),
    "stale": ("Start a run, or find out why the source brings nothing.", "dag"),
    "lagging": ("Start a run; if runs end before all is read, run it more often or on more cores.", "dag"),
    "rebuild waiting": ("Compare it with the live output, and approve or reject it.", "decide"),
    "late flood": ("Find out why its rows come late, or give its watermark a longer delay.", "pipeline"),
    "quarantine growing": ("Look at the rows, fix the rule or the source, and replay them.", "quarantine"),
    "waiting": ("Start a run: it publishes what is staged.", "dag"),
    "never ran": ("Start the first run.", "dag"),
    "running": ("Watch its log.", "log"),
    "ok": ("", ""),
}


def next_step(seen: Seen) -> NextStep:
    """Return what to do about the worst that can be said of a pipeline."""
    state, _, command = seen.finding
    sentence, place = _SENTENCES[state]
    if place in ("run", "log") and "dag_id" not in (seen.figures.last.origin if seen.figures.last else {}):
        # A run of the command line has no page in Airflow; that of the pipeline shows its error.
        place = "pipeline" if place == "run" else "dag"
    return NextStep(sentence, place, command)
