"""Converts Arrow's types, those of a parquet file, to Spark's DDL."""

from __future__ import annotations

import pyarrow as pa

from drawdown.errors import SpecError
from drawdown.scaffold.column_types import SampleColumn

_PLAIN = {
    pa.bool_(): "BOOLEAN", pa.int8(): "TINYINT", pa.int16(): "SMALLINT", pa.int32(): "INT",
    pa.int64(): "BIGINT", pa.uint8(): "SMALLINT", pa.uint16(): "INT", pa.uint32(): "BIGINT",
    pa.float32(): "FLOAT", pa.float64(): "DOUBLE", pa.string(): "STRING", pa.large_string(): "STRING",
    pa.binary(): "BINARY", pa.large_binary(): "BINARY", pa.date32(): "DATE",
}  # fmt: skip


def spark_type(type: pa.DataType) -> str:
    """The type as which Spark reads such a column of a parquet file.

    Raises:
        SpecError: ``init.sample-type``: Spark reads none.
    """
    if type in _PLAIN:
        return _PLAIN[type]
    if pa.types.is_timestamp(type):
        return "TIMESTAMP" if type.tz else "TIMESTAMP_NTZ"
    if pa.types.is_decimal(type):
        return f"DECIMAL({type.precision},{type.scale})"
    if pa.types.is_dictionary(type):
        return spark_type(type.value_type)
    if pa.types.is_list(type) or pa.types.is_large_list(type):
        return f"ARRAY<{spark_type(type.value_type)}>"
    if pa.types.is_map(type):
        return f"MAP<{spark_type(type.key_type)}, {spark_type(type.item_type)}>"
    if pa.types.is_struct(type):
        fields = [SampleColumn(field.name, spark_type(field.type)) for field in type]
        return f"STRUCT<{', '.join(f'{field.quoted}: {field.type}' for field in fields)}>"
    raise SpecError(
        "init.sample-type",
        f"Spark has no type for {type}",
        where="the sample's schema",
        do="leave the column out of the sample, or write it as another type",
    )
