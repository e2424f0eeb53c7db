"""What refuses a rebuild or its swap, and that nothing was made or changed then."""

from __future__ import annotations

import pytest

from drawdown.errors import AuditFailed, RefusedError
from drawdown.rebuild.refusals import rebuild_id
from tests.support.rebuilds import (
    NAME,
    SPEC,
    comparison,
    end,
    event,
    land,
    live_version,
    next_version,
    rebuilt,
    rows,
)
from tests.support.sandbox import Sandbox

HELD_AT_TEN = """
expectations:
  - {type: expect_column_max_to_be_between, kwargs: {column: total, max_value: 10}}
"""


@pytest.fixture
def drained(sandbox: Sandbox) -> Sandbox:
    """Two batches; the second's first event came too late for its window."""
    live_version(sandbox)
    land(sandbox, 1, [event("02T06:10"), event("02T08:10")])
    sandbox.run(NAME)
    land(sandbox, 2, [event("02T06:40", 4), event("02T09:10")])
    sandbox.run(NAME)
    next_version(sandbox)
    return sandbox


def refusal(sandbox: Sandbox) -> RefusedError:
    """Of a start, which leaves everything as it was."""
    before = sandbox.everything()
    with pytest.raises(RefusedError) as refused:
        rebuilt(sandbox)
    assert sandbox.everything() == before
    return refused.value


def test_what_cannot_be_rebuilt_is_refused_before_anything_is_made(drained: Sandbox) -> None:
    next_version(drained, SPEC.replace("format: delta", "format: parquet"))
    assert refusal(drained).id == "rebuild.sink"
    next_version(drained, SPEC.replace("tables/hourly", "tables/elsewhere"))
    assert refusal(drained).id == "rebuild.other-sink"
    next_version(drained, SPEC.replace("time_column: hour", "partition_by: [k]"))
    assert refusal(drained).id == "rebuild.other-sink"
    next_version(drained)
    gone = drained.storage / "landing/events/1.json"
    aside = gone.rename(drained.storage / "1.json")
    error = refusal(drained)
    assert error.id == "rebuild.files-gone"
    assert str(gone) in error.what
    aside.rename(gone)
    with pytest.raises(RefusedError) as refused:
        end(drained, "approve")
    assert refused.value.id == "rebuild.none"
    with pytest.raises(RefusedError) as refused:
        end(drained, "rollback")
    assert refused.value.id == "rebuild.not-swapped"


def test_a_rebuild_that_never_ran_live_is_refused(sandbox: Sandbox) -> None:
    live_version(sandbox)
    assert refusal(sandbox).id == "rebuild.nothing-live"


@pytest.mark.full
def test_a_rebuild_that_drops_more_late_rows_than_the_live_query_is_refused(drained: Sandbox) -> None:
    """A file that is older than those the live query had read before it makes another order."""
    drained.land_json("landing/events/0.json", [event("02T12:10")], mtime=1_600_000_000)
    with pytest.raises(RefusedError, match="dropped 2 rows as late, the live query 1") as refused:
        rebuilt(drained)
    assert refused.value.id == "rebuild.more-late"
    assert comparison(drained)["late"] == {"live": 1, "shadow": 2}, "it is shown all the same"
    before = rows(drained)
    with pytest.raises(RefusedError) as again:
        end(drained, "approve")
    assert again.value.id == "rebuild.more-late"
    assert rows(drained) == before
    end(drained, "discard")
    assert not list(drained.storage.rglob("_rebuild/2/*")), "nothing of it is left"
    larger = "options: {maxFilesPerTrigger: 10}\n    watermark:"
    next_version(drained, SPEC.replace("watermark:", larger))
    assert rebuilt(drained).generation == 3, "another one has another number"
    assert comparison(drained)["late"] == {"live": 1, "shadow": 0}


@pytest.mark.full
def test_a_swap_over_slices_that_wait_is_refused_and_names_the_way(sandbox: Sandbox) -> None:
    live_version(sandbox, quality=HELD_AT_TEN)
    land(sandbox, 1, [event("02T06:10", 99), event("02T08:10")])
    with pytest.raises(AuditFailed):
        sandbox.run(NAME)
    next_version(sandbox)
    rebuilt(sandbox)
    with pytest.raises(RefusedError) as refused:
        end(sandbox, "approve")
    assert refused.value.id == "rebuild.waiting"
    assert "drawdown release hourly" in str(refused.value.do)


@pytest.mark.full
def test_a_slice_of_the_rebuild_that_fails_its_audit_ends_it(drained: Sandbox) -> None:
    strict = drained.root / "include/pipelines" / NAME / "next/quality.yaml"
    strict.write_text(HELD_AT_TEN.replace("max_value: 10", "max_value: 0"))
    with pytest.raises(AuditFailed):
        rebuilt(drained)
    assert refusal(drained).id == "rebuild.audit-failed", "typed again"
    strict.unlink()
    assert refusal(drained).id == "rebuild.audit-failed", "what it drained is the same"
    end(drained, "discard")
    assert rebuilt(drained).generation == 3
    assert end(drained, "approve", 3).state == "succeeded"


@pytest.mark.full
def test_a_decision_is_about_the_rebuild_that_was_shown(sandbox: Sandbox) -> None:
    live_version(sandbox)
    land(sandbox, 1, [event("02T06:10"), event("02T08:10")])
    sandbox.run(NAME)
    next_version(sandbox)
    rebuilt(sandbox)
    shown = shadow(sandbox)

    land(sandbox, 2, [event("02T08:40", 4), event("02T10:10")])
    sandbox.run(NAME)
    rebuilt(sandbox)
    assert refused_as_another(sandbox, shown) == ["rebuild.another"] * 2, "it was compared again"

    shown = shadow(sandbox)
    end(sandbox, "discard", 2, shown)
    rebuilt(sandbox)
    assert refused_as_another(sandbox, shown) == ["rebuild.another"] * 2, "it is another generation"
    assert end(sandbox, "approve", 3, shadow(sandbox)).state == "succeeded"


def shadow(sandbox: Sandbox) -> str:
    """What names the rebuild there is."""
    with sandbox.metastore() as metastore:
        found = metastore.of_rebuilds.active_checkpoint(NAME)
        assert found is not None
        return rebuild_id(found)


def refused_as_another(sandbox: Sandbox, about: str) -> list[str]:
    """Ids of what refuses both decisions; nothing is touched."""
    before, ids = sandbox.everything(), []
    for number, choice in enumerate(("approve", "discard")):
        with pytest.raises(RefusedError) as refused:
            end(sandbox, choice, hash((about, number)), about)
        ids.append(refused.value.id)
    assert sandbox.everything() == before
    return ids
