"""Text that suppliers of data write is read as JSON of ordinary depth, or is a ValueError."""

import json
from pathlib import Path

import pytest

from drawdown.errors import SpecError
from drawdown.scaffold.sample import of_records, read_sample
from drawdown.sources.files.notified.events import created_keys
from drawdown.sources.files.schema_drift import drift_of
from drawdown.spec import Source
from drawdown.storage import Storage
from drawdown.values.json_text import TooDeepError, read_json

pytestmark = pytest.mark.capability("SAFE-07")

ARRAYS = "[" * 5_000 + "]" * 5_000
OBJECTS = '{"a": ' * 5_000 + "1" + "}" * 5_000
CUT_OFF = "[" * 100_000


@pytest.mark.parametrize("text", [ARRAYS, OBJECTS, CUT_OFF, f'{{"id": 1, "more": {ARRAYS}}}'])
def test_a_document_of_thousands_of_levels_is_a_value_error(text: str) -> None:
    for given in (text, text.encode(), text.encode("utf-16")):
        with pytest.raises(TooDeepError):
            read_json(given)


@pytest.mark.parametrize(
    "value",
    ["[" * 300, [[1]] * 1_000, {'a \\" [[[': ["{" * 500]}, ["\\", "[" * 300], 1, None],
)
def test_brackets_in_strings_and_side_by_side_do_not_nest(value: object) -> None:
    for text in (json.dumps(value), f"\ufeff{json.dumps(value)}"):
        assert read_json(text) == read_json(text.encode()) == value


def test_a_notification_of_thousands_of_levels_reports_nothing() -> None:
    assert list(created_keys(f'{{"Records": {ARRAYS}}}'.encode(), "lake")) == []
    assert list(created_keys(b"\xff\xfe\xff", "lake")) == []


def test_the_columns_of_a_file_are_compared_without_its_deep_record(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(f'{{"id": 1, "more": {ARRAYS}}}\n{{"id": 2, "other": 1}}\n')
    storage = Storage(str(tmp_path))
    info = storage.info("a.json")
    assert info is not None
    drift = drift_of(storage, Source(format="json", path="x", schema="id INT"), info, {"id": "int"})
    assert drift is not None
    assert drift.what == "it has more columns: other"


def test_a_sample_of_thousands_of_levels_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(ARRAYS)
    with pytest.raises(SpecError, match="nests deeper"):
        read_sample(tmp_path / "a.json")
    assert of_records([OBJECTS], "clicks").rows == ()
