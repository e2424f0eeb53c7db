"""Column names of DDL texts, as Spark would see them."""

from __future__ import annotations

from drawdown.values.column_names import column_names


def test_names_are_the_first_words_of_the_columns() -> None:
    ddl = """
    id BIGINT COMMENT 'its number, never NULL',  -- not, a, column
    `the place``s name`: STRUCT<x: INT, y: ARRAY<STRING>> NOT NULL,
    price DECIMAL(10, 2), /* b INT, */ tags MAP<STRING, INT>
    """
    assert column_names(ddl) == ["id", "the place`s name", "price", "tags"]
