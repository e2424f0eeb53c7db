"""Values of a slice as JSON that any reader takes."""

from __future__ import annotations

import json
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from pyspark.sql import Row

from drawdown.quality.json_values import plain


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        (7, 7),
        (1.5, 1.5),
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
        (Decimal("10.20"), "10.20"),
        (date(2013, 1, 2), "2013-01-02"),
        (datetime(2013, 1, 2, 3, 4, 5), "2013-01-02T03:04:05"),
        (timedelta(hours=1), "1:00:00"),
        (b"\x00\xff", "0x00ff"),
        (np.int64(3), 3),
        (np.float64("nan"), "nan"),
        (np.array([1, 2]), [1, 2]),
        ((1, "a"), [1, "a"]),
        (Row(origin="EWR", at=date(2013, 1, 1)), {"origin": "EWR", "at": "2013-01-01"}),
        ({"when": [Decimal("1")]}, {"when": ["1"]}),
    ],
)
def test_every_kind_of_value_has_a_json_form(value: Any, expected: Any) -> None:
    found = plain(value)
    assert found == expected
    assert type(found) is type(expected)
    assert json.loads(json.dumps(found, allow_nan=False)) == expected


def test_an_observed_list_of_every_distinct_value_is_cut() -> None:
    assert plain(list(range(100_000))) == [*range(10), "… 99990 more"]


def test_long_text_is_cut() -> None:
    assert plain("x" * 1_000) == "x" * 200 + "…"


def test_what_the_user_wrote_is_kept_whole() -> None:
    assert plain({"value_set": list(range(50))}, max_items=None) == {"value_set": list(range(50))}
