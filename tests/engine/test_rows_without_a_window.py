"""Rows that windows drop because they have no event time are counted, so that what was fed adds up."""

from __future__ import annotations

import pytest

from tests.support.sandbox import Sandbox
from tests.support.timed import EVENTS, HOURLY_FILES

_WINDOWS = {
    "tumbling": "window(at, '1 hour')",
    "sliding": "window(at, '1 hour', '30 minutes')",
    "session": "session_window(at, '5 minutes')",
}


@pytest.mark.parametrize(
    "kind", [pytest.param(k, marks=[pytest.mark.full] * (k != "tumbling")) for k in _WINDOWS]
)
def test_rows_without_event_time_are_counted_where_a_window_drops_them(sandbox: Sandbox, kind: str) -> None:
    window = _WINDOWS[kind]
    name = window.partition("(")[0]
    transform = f"SELECT {name}.start AS hour, count(*) AS n FROM events GROUP BY {window}, k"
    sandbox.pipeline("hourly", EVENTS, **{**HOURLY_FILES, "transform_sql": transform})
    rows = [{"at": f"2024-01-01T{hour}:00:00Z", "k": "a"} for hour in ("10", "12", "14")]
    sandbox.land_json("landing/events/1.json", [*rows, {"at": None, "k": "a"}, {"k": "b"}])
    counts = sandbox.run("hourly").counts
    assert (counts.read, counts.fed, counts.sessionless) == (5, 5, 2)
    sandbox.land_json("landing/events/2.json", [{"at": "2024-01-01T15:00:00Z", "k": "a"}, {"k": "b"}])
    assert sandbox.run("hourly").counts.sessionless == 1


def test_a_filter_of_the_transform_is_not_counted(sandbox: Sandbox) -> None:
    """It asks for a time, too, above and below a window: what it drops is what the author wants."""
    transform = """
        SELECT w.start AS hour, n FROM
            (SELECT window AS w, count(*) AS n FROM (SELECT * FROM events WHERE at IS NOT NULL)
             GROUP BY window(at, '1 hour'))
        WHERE w IS NOT NULL
    """
    sandbox.pipeline("hourly", EVENTS, **{**HOURLY_FILES, "transform_sql": transform})
    sandbox.land_json("landing/events/1.json", [{"at": "2024-01-01T10:00:00Z", "k": "a"}, {"k": "b"}])
    counts = sandbox.run("hourly").counts
    assert (counts.fed, counts.sessionless) == (2, 0)
