"""From which source columns each output column comes: by the analysed plan, whoever wrote the transform."""

from __future__ import annotations

import pytest

from drawdown.observe.lineage.column_lineage import Origin, OutputColumns, columns, keep_columns
from drawdown.observe.lineage.spark_column_lineage import output_columns
from drawdown.workspace import Generation, Workspace
from tests.support.refusals import planned
from tests.support.sandbox import Sandbox

SPEC = """
sources:
  orders:
    format: json
    path: landing/orders
    schema: "id INT, who STRING, amount DOUBLE, state STRING, at TIMESTAMP, tags ARRAY<STRING>"
    watermark: {{column: at, delay: 1 hour}}
  labels: {{format: csv, path: labels, schema: "state STRING, label STRING", static: true}}
transform: transform.{kind}
sink: {{format: delta, path: tables/out, schema: "{schema}"}}
state: {{partitions: 2}}
"""


def _found(sandbox: Sandbox, kind: str, schema: str, text: str) -> OutputColumns:
    for folder in ("landing/orders", "labels"):
        (sandbox.storage / folder).mkdir(parents=True, exist_ok=True)
    sandbox.pipeline("out", SPEC.format(kind=kind, schema=schema), **{f"transform_{kind}": text})
    return output_columns(planned(sandbox, "out").accepted())


def _from(found: OutputColumns, column: str) -> list[str]:
    return [f"{o.how} {o.source}.{o.column}{' masked' * o.masked}" for o in found.origins[column]]


def _rows(found: OutputColumns) -> set[str]:
    return {f"{origin.how} {origin.source}.{origin.column}" for origin in found.rows}


@pytest.mark.capability("SEE-13")
def test_columns_of_sql_are_followed_through_joins_filters_and_functions(sandbox: Sandbox) -> None:
    found = _found(
        sandbox, "sql", "id INT, name STRING, price DOUBLE, kind STRING, secret STRING, tag STRING, n INT",
        """
        WITH paid AS (SELECT *, amount * 2 AS price FROM orders WHERE amount > 0)
        SELECT p.id, upper(l.label) AS name, p.price,
          CASE WHEN p.amount > 5 THEN p.who ELSE 'none' END AS kind,
          sha2(p.who, 256) AS secret, tag, 1 AS n
        FROM paid p JOIN labels l ON l.state = p.state LATERAL VIEW explode(p.tags) AS tag
        """,
    )  # fmt: skip
    assert _from(found, "id") == ["identity orders.id"]
    assert _from(found, "name") == ["transformation labels.label"]
    assert _from(found, "price") == ["transformation orders.amount"]
    assert _from(found, "kind") == ["conditional orders.amount", "transformation orders.who"]
    assert _from(found, "secret") == ["transformation orders.who masked"]
    assert _from(found, "tag") == ["transformation orders.tags"]
    assert _from(found, "n") == []
    assert _rows(found) == {"filter orders.amount", "join orders.state", "join labels.state"}
    assert found.sources["labels"] == {"state": "string", "label": "string"}
    assert found.sources["orders"]["tags"] == "array<string>"
    assert found.types["price"] == "double"


def test_columns_of_windows_and_aggregates(sandbox: Sandbox) -> None:
    found = _found(
        sandbox, "sql", "who STRING, start TIMESTAMP, total DOUBLE, n BIGINT",
        "SELECT who, window.start AS start, sum(amount * 2) AS total, count(id) AS n FROM orders "
        "GROUP BY who, window(at, '1 hour', '30 minutes')",
    )  # fmt: skip
    assert _from(found, "who") == ["identity orders.who"]
    assert _from(found, "start") == ["transformation orders.at"]
    assert _from(found, "total") == ["aggregation orders.amount"]
    assert _from(found, "n") == ["aggregation orders.id masked"]
    assert {"group by orders.who", "group by orders.at"} <= _rows(found)


def test_a_union_and_a_subquery(sandbox: Sandbox) -> None:
    found = _found(
        sandbox, "sql", "a STRING, most STRING",
        "SELECT who AS a, (SELECT max(label) FROM labels) AS most FROM orders UNION ALL "
        "SELECT state, 'x' FROM orders",
    )  # fmt: skip
    assert _from(found, "a") == ["identity orders.state", "identity orders.who"]
    assert _from(found, "most") == ["aggregation labels.label"]


def test_columns_of_a_transform_in_python(sandbox: Sandbox) -> None:
    found = _found(
        sandbox, "py", "id INT, double DOUBLE, label STRING",
        """
        import pandas as pd
        from pyspark.sql import functions as F

        @F.pandas_udf("double")
        def twice(amount: pd.Series) -> pd.Series:
            return amount * 2

        def transform(sources):
            joined = sources["orders"].join(sources["labels"], "state")
            return joined.select("id", twice("amount").alias("double"), "label")
        """,
    )  # fmt: skip
    assert _from(found, "id") == ["identity orders.id"]
    assert _from(found, "double") == ["transformation orders.amount"]
    assert _from(found, "label") == ["identity labels.label"]
    assert _rows(found) == {"join orders.state", "join labels.state"}


def test_a_function_over_whole_rows_may_use_every_column_that_it_gets(sandbox: Sandbox) -> None:
    found = _found(
        sandbox, "py", "id INT",
        """
        def transform(sources):
            rows = sources["orders"].select("id", "who")
            return rows.mapInPandas(lambda parts: (part[["id"]] for part in parts), "id INT")
        """,
    )  # fmt: skip
    assert _from(found, "id") == ["transformation orders.id", "transformation orders.who"]


def test_columns_are_kept_beside_the_checkpoint_and_written_when_they_change(sandbox: Sandbox) -> None:
    found = _found(sandbox, "sql", "id INT", "SELECT id FROM orders WHERE amount > 5")
    with sandbox.metastore() as metastore:
        generation = Generation.of(
            Workspace(sandbox.project, metastore),
            sandbox.pipeline("out", SPEC.format(kind="sql", schema="id INT")),
        )
        assert columns(generation) is None
        keep_columns(generation, found)
        before = sandbox.snapshot()
        keep_columns(generation, found)
        assert sandbox.snapshot() == before
        assert columns(generation) == found
        kept = sandbox.storage / "_drawdown/out/lineage-1/columns.json"
        assert "5" not in kept.read_text(), "no literal of the transform is kept"
        kept.write_text('{"format": 99}')
        assert columns(generation) is None, "of another version"
    assert found.rows == (Origin("orders", "amount", "filter"),)
