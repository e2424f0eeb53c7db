"""Numbers the departures of each aircraft, over all runs."""

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle


class Number(StatefulProcessor):
    def init(self, handle: StatefulProcessorHandle) -> None:
        self._seen = handle.getValueState("seen", "seen INT")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        seen = self._seen.get()[0] if self._seen.exists() else 0
        for row in sorted(rows, key=lambda row: row.departed_at):
            seen += 1
            yield Row(tailnum=key[0], flight=row.flight, number=seen)
        self._seen.update((seen,))


def transform(sources: dict[str, DataFrame]) -> DataFrame:
    by_aircraft = sources["departures"].groupBy("tailnum")
    return by_aircraft.transformWithState(
        statefulProcessor=Number(),
        outputStructType="tailnum STRING, flight INT, number INT",
        outputMode="append",
        timeMode="none",
    )
