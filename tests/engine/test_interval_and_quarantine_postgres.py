"""As test_interval_and_quarantine.py: PostgreSQL's ledger tells whether a replay that died had committed."""

from __future__ import annotations

from datetime import UTC

import pytest

from drawdown.errors import DrawdownError
from drawdown.metastore import Metastore
from tests.engine.test_interval_and_quarantine import DAY, FILES, SPEC, land, states
from tests.support.database import TestDatabase
from tests.support.replays import replayed
from tests.support.sandbox import Sandbox
from tests.support.set_aside import NAME, replay

INTO = SPEC.replace("format: delta, path: tables/out", "format: postgres, table: public.out")


def judge_by(sandbox: Sandbox, most: int) -> None:
    sandbox.pipeline(
        NAME,
        INTO,
        **FILES,
        quality_yaml=f"rules: [{{name: small, check: v < {most}, on_fail: quarantine}}]\n",
    )


@pytest.mark.full
def test_a_replay_that_died_behind_its_commit_has_closed_its_rows(
    database: TestDatabase, postgres_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox = postgres_sandbox
    judge_by(sandbox, 10)
    land(sandbox, "a", "1,2024-01-01T10:00:00Z,1", "3,2024-01-01T11:00:00Z,30")
    land(sandbox, "b", "2,2024-01-03T10:00:00Z,2")
    judge_by(sandbox, 35)

    def dies(*_: object, **__: object) -> None:
        raise OSError("dead")

    with monkeypatch.context() as death:
        death.setattr(Metastore, "end_changes", dies)
        with pytest.raises(DrawdownError):
            replayed(sandbox, *DAY)
    assert states(sandbox) == {3: "replaying"}
    assert replay(sandbox).counts.replayed == 0
    assert states(sandbox) == {3: "replayed"}
    assert sorted((id, at.astimezone(UTC).day) for id, at, _ in database.table()) == [(1, 1), (2, 3), (3, 1)]
