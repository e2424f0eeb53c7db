"""Names of topics and consumer groups, and which of them are not a user's: Kafka's own and Drawdown's."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, StringConstraints

from drawdown.values.model import problem

_LEDGER = "drawdown-ledger"
# Kafka takes names for one that differ only in dots and underscores, and creates the first of them.
RESERVED = rf"^(__|{_LEDGER}([._]|$))"
"""Matches reserved names, in Python, Spark and Arrow alike."""
RESERVED_ROWS = "sink.reserved-topic"
"""Marks Spark's message when rows name a reserved topic; see spark/query_failures.py."""

OTHER_TOPIC = (
    "give each row another topic in the transform: `__` and drawdown-ledger begin names of Kafka and Drawdown"
)
"""The remedy for it."""


def ledger_topic(pipeline: str) -> str:
    """Return the topic of a pipeline's ledger."""
    return f"{_LEDGER}.{pipeline}"


def is_reserved(name: str) -> bool:
    """Whether a topic or group belongs to Kafka itself or to a ledger, which says what was sent."""
    return re.match(RESERVED, name) is not None


def refuse_reserved(name: str, *at: str | int) -> str:
    """Return the name unchanged; raises a problem that becomes ``spec.reserved-name``."""
    if is_reserved(name):
        raise problem(
            "reserved-name",
            f"{name} is reserved: names of Kafka begin with `__`, of Drawdown with {_LEDGER}",
            *at,
            do="give it another name",
        )
    return name


Topic = Annotated[
    str,
    StringConstraints(pattern=r"^[A-Za-z0-9._-]{1,249}$"),
    AfterValidator(lambda name: refuse_reserved(name)),
]
# Kafka takes any text; this much every lag tool, shell and metric label takes.
GroupName = Annotated[
    str,
    StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._\-]{0,248}$"),
    AfterValidator(lambda name: refuse_reserved(name)),
]
