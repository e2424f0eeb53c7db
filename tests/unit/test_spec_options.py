"""Values of options that Spark reads are taken; what is refused stands in tests/fixtures/bad_input."""

from __future__ import annotations

from drawdown.values.option_types import DURATION, SIZE, WHOLE, one_of


def test_values_that_spark_reads_are_taken() -> None:
    assert all(WHOLE.takes(each) for each in (1, "20", -1))
    assert all(SIZE.takes(each) for each in (100, "100m", "1GB", "5kb"))
    assert all(DURATION.takes(each) for each in ("7d", "12 h", "500ms", 1000))
    assert one_of("a", "b").takes("A")
