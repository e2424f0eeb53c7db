"""Tells targets what has changed, and records that they know."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from drawdown.errors import DrawdownError
from drawdown.metastore import Metastore
from drawdown.metastore.records import Announcement
from drawdown.observe.alerts.receivers import AlertReceiver
from drawdown.values.text import counted, utc

SINGLE = 10
"""Up to so many changes are a message each; more at once, as when a broker is away, are one message."""

Link = Callable[[Announcement], str]
"""Returns the address of the page about an alert; empty if Airflow's own address is not known."""


@dataclass
class Told:
    """What became of the messages."""

    sent: int = 0
    errors: list[DrawdownError] = field(default_factory=list)


def announce(
    metastore: Metastore, due: Iterable[Announcement], targets: Mapping[str, AlertReceiver], link: Link
) -> Told:
    """Tell each target what is due; one that is down does not keep the others from hearing."""
    told = Told()
    by_target = sorted(due, key=lambda each: each.target)
    for name, found in groupby(by_target, key=lambda each: each.target):
        try:
            for part in _messages(list(found)):
                _tell(metastore, targets[name], part, link)
                told.sent += 1
        except DrawdownError as error:
            told.errors.append(error)
    return told


def _messages(due: Sequence[Announcement]) -> list[list[Announcement]]:
    return [[each] for each in due] if len(due) <= SINGLE else [list(due)]


def _tell(metastore: Metastore, target: AlertReceiver, part: Sequence[Announcement], link: Link) -> None:
    ended = [each for each in part if each.ended_at is not None]
    title = _title(part[0]) if len(part) == 1 else f"Drawdown: {counted(len(part), 'change')} of state"
    text = "\n".join(_text(each, link(each)) for each in part)
    target.tell(title, text, over=len(ended) == len(part))
    now = metastore.now()
    metastore.announcements.keep(replace(each, told_at=now) for each in part if each.ended_at is None)
    metastore.announcements.forget(each.key for each in ended)


def _title(each: Announcement) -> str:
    return f"{each.pipeline}: {each.alert}{' is over' if each.ended_at is not None else ''}"


def _text(each: Announcement, address: str) -> str:
    said = each.sentence
    if each.ended_at is not None:
        said = f"{each.pipeline}: {each.alert} is over since {utc(each.ended_at)}."
        if each.told_at is None:  # the target was down meanwhile and hears of it for the first time
            said += f" It began at {utc(each.since)}: {each.sentence}"
    return f"{said}\n{address}" if address else said
