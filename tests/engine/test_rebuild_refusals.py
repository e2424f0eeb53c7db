"""What refuses a rebuild or its swap, and that nothing was made or changed then."""

from __future__ import annotations

import pytest

from drawdown.errors import AuditFailed, RefusedError
from drawdown.rebuild.refusals import rebuild_id
from tests.support.rebuilds import NAME, SPEC, Hourly, event

HELD_AT_TEN = """
expectations:
  - {type: expect_column_max_to_be_between, kwargs: {column: total, max_value: 10}}
"""


@pytest.fixture
def drained(hourly: Hourly) -> Hourly:
    """Two batches; the second's first event came too late for its window."""
    hourly.live_version()
    hourly.arrive_and_run(1, [event("02T06:10"), event("02T08:10")])
    hourly.arrive_and_run(2, [event("02T06:40", 4), event("02T09:10")])
    hourly.next_version()
    return hourly


def refusal(hourly: Hourly) -> RefusedError:
    """Of a start, which leaves everything as it was."""
    before = hourly.everything()
    with pytest.raises(RefusedError) as refused:
        hourly.rebuilt()
    assert hourly.everything() == before
    return refused.value


def test_what_cannot_be_rebuilt_is_refused_before_anything_is_made(drained: Hourly) -> None:
    drained.next_version(SPEC.replace("format: delta", "format: parquet"))
    assert refusal(drained).id == "rebuild.sink"
    drained.next_version(SPEC.replace("tables/hourly", "tables/elsewhere"))
    assert refusal(drained).id == "rebuild.other-sink"
    drained.next_version(SPEC.replace("time_column: hour", "partition_by: [k]"))
    assert refusal(drained).id == "rebuild.other-sink"
    drained.next_version()
    gone = drained.storage / "landing/events/1.json"
    aside = gone.rename(drained.storage / "1.json")
    error = refusal(drained)
    assert error.id == "rebuild.files-gone"
    assert str(gone) in error.what
    aside.rename(gone)
    with pytest.raises(RefusedError) as refused:
        drained.end("approve")
    assert refused.value.id == "rebuild.none"
    with pytest.raises(RefusedError) as refused:
        drained.end("rollback")
    assert refused.value.id == "rebuild.not-swapped"


def test_a_rebuild_that_never_ran_live_is_refused(hourly: Hourly) -> None:
    hourly.live_version()
    assert refusal(hourly).id == "rebuild.nothing-live"


@pytest.mark.full
def test_a_rebuild_that_drops_more_late_rows_than_the_live_query_is_refused(drained: Hourly) -> None:
    """A file that is older than those the live query had read before it makes another order."""
    drained.land_json("landing/events/0.json", [event("02T12:10")], mtime=1_600_000_000)
    with pytest.raises(RefusedError, match="dropped 2 rows as late, the live query 1") as refused:
        drained.rebuilt()
    assert refused.value.id == "rebuild.more-late"
    assert drained.comparison()["late"] == {"live": 1, "shadow": 2}, "it is shown all the same"
    before = drained.rows()
    with pytest.raises(RefusedError) as again:
        drained.end("approve")
    assert again.value.id == "rebuild.more-late"
    assert drained.rows() == before
    drained.end("discard")
    assert not list(drained.storage.rglob("_rebuild/2/*")), "nothing of it is left"
    larger = "options: {maxFilesPerTrigger: 10}\n    watermark:"
    drained.next_version(SPEC.replace("watermark:", larger))
    assert drained.rebuilt().generation == 3, "another one has another number"
    assert drained.comparison()["late"] == {"live": 1, "shadow": 0}


@pytest.mark.full
def test_a_swap_over_slices_that_wait_is_refused_and_names_the_way(hourly: Hourly) -> None:
    hourly.live_version(quality=HELD_AT_TEN)
    hourly.arrive(1, [event("02T06:10", 99), event("02T08:10")])
    with pytest.raises(AuditFailed):
        hourly.run(NAME)
    hourly.next_version()
    hourly.rebuilt()
    with pytest.raises(RefusedError) as refused:
        hourly.end("approve")
    assert refused.value.id == "rebuild.waiting"
    assert "drawdown release hourly" in str(refused.value.do)


@pytest.mark.full
def test_a_slice_of_the_rebuild_that_fails_its_audit_ends_it(drained: Hourly) -> None:
    strict = drained.root / "include/pipelines" / NAME / "next/quality.yaml"
    strict.write_text(HELD_AT_TEN.replace("max_value: 10", "max_value: 0"))
    with pytest.raises(AuditFailed):
        drained.rebuilt()
    assert refusal(drained).id == "rebuild.audit-failed", "typed again"
    strict.unlink()
    assert refusal(drained).id == "rebuild.audit-failed", "what it drained is the same"
    drained.end("discard")
    assert drained.rebuilt().generation == 3
    assert drained.end("approve", 3).state == "succeeded"


@pytest.mark.full
def test_a_decision_is_about_the_rebuild_that_was_shown(hourly: Hourly) -> None:
    hourly.live_version()
    hourly.arrive_and_run(1, [event("02T06:10"), event("02T08:10")])
    hourly.next_version()
    hourly.rebuilt()
    shown = shadow(hourly)

    hourly.arrive_and_run(2, [event("02T08:40", 4), event("02T10:10")])
    hourly.rebuilt()
    assert refused_as_another(hourly, shown) == ["rebuild.another"] * 2, "it was compared again"

    shown = shadow(hourly)
    hourly.end("discard", 2, shown)
    hourly.rebuilt()
    assert refused_as_another(hourly, shown) == ["rebuild.another"] * 2, "it is another generation"
    assert hourly.end("approve", 3, shadow(hourly)).state == "succeeded"


def shadow(hourly: Hourly) -> str:
    """What names the rebuild there is."""
    with hourly.metastore() as metastore:
        found = metastore.of_rebuilds.active_checkpoint(NAME)
        assert found is not None
        return rebuild_id(found)


def refused_as_another(hourly: Hourly, about: str) -> list[str]:
    """Ids of what refuses both decisions; nothing is touched."""
    before, ids = hourly.everything(), []
    for number, choice in enumerate(("approve", "discard")):
        with pytest.raises(RefusedError) as refused:
            hourly.end(choice, hash((about, number)), about)
        ids.append(refused.value.id)
    assert hourly.everything() == before
    return ids
