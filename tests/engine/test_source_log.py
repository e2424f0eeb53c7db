"""How the log of files seen grows: what docs/state.md says of it."""

from __future__ import annotations

import time

import pytest

from tests.support.sandbox import Sandbox
from tests.support.timed import EVENTS

_RUNS = 4


@pytest.mark.full
def test_the_log_of_files_keeps_one_line_for_each_file_that_ever_came(sandbox: Sandbox) -> None:
    """Neither `maxFileAge` nor the end of a file shortens it: Spark 4.2 compacts it and forgets none."""
    spec = EVENTS.replace("schema: event.ddl,", "schema: event.ddl, options: {maxFileAge: 1ms},")
    spec += "conf: {spark.sql.streaming.fileSource.log.compactInterval: 2}\n"
    sandbox.pipeline(
        "plain",
        spec,
        event_ddl="at TIMESTAMP, k STRING",
        out_ddl="at TIMESTAMP, k STRING",
        transform_sql="SELECT * FROM events",
    )
    for number in range(_RUNS):
        path = sandbox.land_json(f"landing/events/{number}.json", [{"at": "2024-01-01T10:00:00Z", "k": "a"}])
        sandbox.run("plain")
        path.unlink()
    compacted = max(
        sandbox.root.rglob("sources/0/*.compact"), key=lambda path: int(path.name.partition(".")[0])
    )
    _, *lines = compacted.read_text().splitlines()
    assert len(lines) == _RUNS
    assert max(map(len, lines)) < 100 + len(str(sandbox.root)) + len("landing/events/0.json")


@pytest.mark.full
def test_a_file_that_comes_back_once_max_file_age_is_raised_is_known_by_its_old_line(
    sandbox: Sandbox,
) -> None:
    """Without that line Spark reads it twice: why upkeep takes none out of the log."""
    now, day = time.time(), 86_400

    def landed(name: str, days: int) -> None:
        rows = [{"at": "2024-01-01T10:00:00Z", "k": name}]
        sandbox.land_json(f"landing/events/{name}.json", rows, mtime=now - days * day)

    def write(age: str) -> None:
        option = f"schema: event.ddl, options: {{maxFileAge: {age}}},"
        sandbox.pipeline(
            "plain",
            EVENTS.replace("schema: event.ddl,", option),
            event_ddl="at TIMESTAMP, k STRING",
            out_ddl="at TIMESTAMP, k STRING",
            transform_sql="SELECT * FROM events",
        )

    write("2d")
    landed("old", days=20)
    sandbox.run("plain")
    (sandbox.storage / "landing/events/old.json").unlink()
    landed("new", days=1)
    sandbox.run("plain")
    write("100d")
    landed("old", days=20)
    assert sandbox.drain("plain")[0].run is None
    assert [k for _, k in sandbox.delta("tables/out")] == ["new", "old"]
