"""The state that a processor of transformWithState declares in its ``init``.

The analysed plan holds only the pickled processor, not its state. Spark finds the state in the same way: it
calls ``init`` on the driver before the first batch (TransformWithStateInPySpark's pre-init, Spark 4.2).
"""

from __future__ import annotations

from typing import Any

from pyspark import cloudpickle
from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle
from pyspark.sql.types import StructType

from drawdown.errors import TransformError
from drawdown.spark.user_code import RAISED, said


def declared_state(function: Any) -> tuple[str, ...]:
    """Return each variable as ``value n: n BIGINT``, sorted by name.

    Args:
        function: the Java PythonUDF of a TransformWithStateInPySpark node.

    Raises:
        TransformError: ``transform.raised``: ``init`` raised an exception.
    """
    # Py4J has no shorter way to read a Scala Seq of bytes.
    numbers = function.func().command().mkString(",").split(",")
    call, _ = cloudpickle.loads(bytes(int(number) % 256 for number in numbers))
    processor = call.__self__._stateful_processor
    declared = _Declared()
    try:
        processor.init(declared)
        processor.close()
    except RAISED as cause:
        raise TransformError(
            "transform.raised",
            f"init of {type(processor).__name__} raised {said(cause)}",
            do="fix the transform; nothing was read or written",
        ) from None
    return tuple(sorted(declared.variables))


class _Declared(StatefulProcessorHandle):
    """Records the state that is requested, and returns none."""

    def __init__(self) -> None:
        self.variables: list[str] = []

    def getValueState(self, stateName: str, schema: Any, ttlDurationMs: int | None = None) -> Any:
        self._note("value", stateName, _ddl(schema), ttlDurationMs)

    def getListState(self, stateName: str, schema: Any, ttlDurationMs: int | None = None) -> Any:
        self._note("list", stateName, _ddl(schema), ttlDurationMs)

    def getMapState(
        self, stateName: str, userKeySchema: Any, valueSchema: Any, ttlDurationMs: int | None = None
    ) -> Any:
        self._note("map", stateName, f"{_ddl(userKeySchema)} to {_ddl(valueSchema)}", ttlDurationMs)

    def deleteIfExists(self, stateName: str) -> None:
        """Do nothing: this deletes a variable of an earlier version."""

    def _note(self, kind: str, name: str, schema: str, ttl: int | None) -> None:
        self.variables.append(f"{kind} {name}: {schema}{' with a time to live' if ttl else ''}")


def _ddl(schema: StructType | str) -> str:
    parsed = schema if isinstance(schema, StructType) else StructType.fromDDL(schema)
    if not isinstance(parsed, StructType):
        return parsed.simpleString()
    return ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in parsed.fields)
