"""What pages take out of an address: the types of their parameters, and what every one of them must be.

A new page declares its parameters with these types. Whatever else somebody writes there is one error with
status 400, before a page reads a record.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import Query, Request
from pydantic import AfterValidator

from drawdown.errors import RefusedError
from drawdown.values.moments import clamped

WRONG = "page.parameter"
LONGEST = 1_000
"""Characters of one parameter: ids of Airflow have up to 250."""
MOST = 50
"""Parameters of one address."""

PageNumber = Annotated[int, Query(ge=1, le=1_000_000)]
Count = Annotated[int, Query(ge=0, le=1_000_000)]
Moment = Annotated[datetime | None, AfterValidator(lambda at: None if at is None else clamped(at))]
"""A time in UTC, at the bound if it lies beyond what a calendar can show."""


def require_sound(request: Request) -> None:
    """Raise RefusedError ``page.parameter`` for what no name, id or value can be, declared or not.

    PostgreSQL, for example, has no text with a NUL.
    """
    given = [*request.path_params.items(), *request.query_params.multi_items()]
    if len(given) > MOST:
        raise wrong("address", f"has {len(given)} parameters, and a page takes {MOST}")
    for name, value in given:
        for text in (name, str(value)):
            if len(text) > LONGEST:
                raise wrong(name, f"is longer than {LONGEST:,} characters")
            if "\0" in text:
                raise wrong(name, "has a NUL character")


def wrong(name: str, why: str) -> RefusedError:
    """Return the error about one part of an address."""
    return RefusedError(
        WRONG,
        f"{name[:50]!r} of this page's address {why}",
        do="correct or remove it, or come to the page by the links of the fleet page",
    )
