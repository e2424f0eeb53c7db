"""From which name on a bucket is listed: nothing that may still be unread comes before it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drawdown.checkpoint import SeenFile
from drawdown.errors import SpecError
from drawdown.sources.files.rising import listed_from
from drawdown.spec import Source
from drawdown.storage import Storage
from tests.support.sandbox import Sandbox

BUCKET = Storage("s3://bucket/lake")
HOUR = 3_600_000
NAMES = st.text(
    st.characters(min_codepoint=33, max_codepoint=0x2FF, exclude_characters="\\"), min_size=1
).filter(lambda name: name.strip("/.") == name and "//" not in name and "/." not in name and "./" not in name)


def source(**more: str) -> Source:
    spec = {"format": "json", "path": "in", "schema": "id INT", "order": "name", **more}
    return Source.model_validate(spec)


def seen(*files: tuple[str, float]) -> list[SeenFile]:
    """Files by name and hour of their time."""
    return [SeenFile(f"s3a://bucket/lake/in/{name}", int(hour * HOUR), 0) for name, hour in files]


def test_nothing_is_left_out_while_names_may_still_come_late() -> None:
    assert listed_from(BUCKET, source(), []) == ""
    assert listed_from(BUCKET, source(), seen(("a", 1), ("b", 1.5), ("c", 2))) == ""


def test_the_last_name_that_was_passed_is_listed_too() -> None:
    after = listed_from(
        BUCKET, source(), seen(("day=1/a", 1), ("day=2/b", 2), ("day=2/c", 3.5), ("day=3/a", 4))
    )
    assert "in/day=2/a~" <= after < "in/day=2/b"


def test_names_may_be_late_for_as_long_as_the_source_says() -> None:
    files = seen(("a", 1), ("b", 2), ("c", 3), ("d", 4))
    assert listed_from(BUCKET, source(names_late="30 minutes"), files) == "in/b~"
    assert listed_from(BUCKET, source(names_late="1 day"), files) == ""


def test_without_order_and_on_a_disk_all_files_are_listed(tmp_path: Path) -> None:
    files = seen(("a", 1), ("b", 9))
    assert listed_from(BUCKET, source(order="time"), files) == ""
    on_disk = Storage(str(tmp_path))
    assert listed_from(on_disk, source(), [SeenFile(f"{tmp_path}/in/a", 1, 0), *files]) == ""


@given(NAMES)
def test_what_is_listed_begins_at_the_name_or_before(name: str) -> None:
    after = listed_from(BUCKET, source(), seen((name, 1), ("~", 9)))
    assert after.encode() < f"in/{name}".encode()


@pytest.mark.capability("OBJ-19")
@pytest.mark.parametrize("identity", ["name+time", "content"])
def test_an_identity_that_cannot_be_exactly_once_is_refused(tmp_path: Path, identity: str) -> None:
    sandbox = Sandbox(tmp_path / "project")
    with pytest.raises(SpecError, match="exactly-once") as caught:
        sandbox.pipeline(
            "events",
            f"""
            sources:
              events: {{format: json, path: landing, schema: "id BIGINT", identity: {identity}}}
            transform: transform.sql
            sink: {{format: delta, path: tables/out, schema: "id BIGINT"}}
            """,
            transform_sql="SELECT id FROM events",
        )
    assert caught.value.id == "spec.wrong-value"


@pytest.mark.parametrize("key", ["order: name", "arrivals: {topic: landed}"])
def test_two_sources_of_a_folder_have_no_order_and_no_notifications(tmp_path: Path, key: str) -> None:
    sandbox = Sandbox(tmp_path / "project")
    with pytest.raises(SpecError, match="events reads the same folder") as caught:
        sandbox.pipeline(
            "events",
            f"""
            sources:
              events: {{format: json, path: landing, schema: "id BIGINT"}}
              rising: {{format: json, path: landing/rising, schema: "id BIGINT", {key}}}
            transform: transform.sql
            sink: {{format: delta, path: tables/out, schema: "id BIGINT"}}
            """,
            transform_sql="SELECT e.id FROM events e JOIN rising r ON e.id = r.id",
        )
    assert caught.value.id == "spec.contradiction"
