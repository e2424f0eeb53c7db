"""JOIN-01 to JOIN-06: a stream and a static source."""

from __future__ import annotations

import duckdb
import pytest
from deltalake import write_deltalake

from drawdown.errors import TransformError
from tests.support.refusals import refused
from tests.support.sandbox import Sandbox, multiset

SPEC = """
sources:
  flights: {format: json, path: landing/flights, schema: flights.ddl}
  airlines: {format: FORMAT, path: reference/airlines, static: trueSCHEMA}
transform: transform.sql
sink: {format: delta, path: tables/out, schema: out.ddl}
state: {partitions: 2}
"""
CSV = SPEC.replace("FORMAT", "csv").replace("SCHEMA", ", schema: airlines.ddl, options: {header: true}")
PARQUET = SPEC.replace("FORMAT", "parquet").replace("SCHEMA", ", schema: airlines.ddl")
DELTA = SPEC.replace("FORMAT", "delta").replace("SCHEMA", "")

FLIGHTS = "flight BIGINT, carrier STRING"
AIRLINES = "carrier STRING, name STRING"
RUN_1 = [(1, "UA"), (2, "ZZ"), (3, "AA"), (4, None)]
RUN_2 = [(5, "AA"), (6, "B6"), (7, "UA")]
NAMES_1 = [("UA", "United"), ("UA", "United Express"), ("B6", "JetBlue")]
NAMES_2 = [*NAMES_1, ("AA", "American")]


def _pipeline(sandbox: Sandbox, spec: str, out: str, sql: str) -> None:
    files = {"flights_ddl": FLIGHTS, "out_ddl": out, "transform_sql": sql}
    sandbox.pipeline("named", spec, **files, **({} if spec == DELTA else {"airlines_ddl": AIRLINES}))


def _fly(sandbox: Sandbox, file: str, flights: list[tuple[int, str | None]]) -> None:
    sandbox.land_json(f"landing/flights/{file}.json", [{"flight": f, "carrier": c} for f, c in flights])
    sandbox.run("named")


def _names(sandbox: Sandbox, spec: str, names: list[tuple[str, str]]) -> None:
    """The static source as it stands from now on."""
    folder = sandbox.storage / "reference" / "airlines"
    folder.mkdir(parents=True, exist_ok=True)
    rows = " UNION ALL ".join(f"SELECT '{carrier}' AS carrier, '{name}' AS name" for carrier, name in names)
    if spec == CSV:
        duckdb.sql(f"COPY ({rows}) TO '{folder}/airlines.csv' (HEADER)")
    elif spec == PARQUET:
        duckdb.sql(f"COPY ({rows}) TO '{folder}/airlines.parquet' (FORMAT parquet)")
    else:
        write_deltalake(str(folder), duckdb.sql(rows).to_arrow_table(), mode="overwrite")


def _by_duckdb(join: str, columns: str) -> list[tuple[object, ...]]:
    """Each run's flights, joined with the names as they stood at that run."""
    return [
        row
        for flights, names in ((RUN_1, NAMES_1), (RUN_2, NAMES_2))
        for row in _joined(flights, names, join, columns)
    ]


def _joined(
    flights: list[tuple[int, str | None]], names: list[tuple[str, str]], join: str, columns: str
) -> list[tuple[object, ...]]:
    with duckdb.connect() as db:
        db.execute("CREATE TABLE flights (flight BIGINT, carrier VARCHAR)")
        db.execute("CREATE TABLE airlines (carrier VARCHAR, name VARCHAR)")
        db.executemany("INSERT INTO flights VALUES (?, ?)", flights)
        db.executemany("INSERT INTO airlines VALUES (?, ?)", names)
        return db.sql(f"SELECT {columns} FROM {join}").fetchall()


def _runs_as(sandbox: Sandbox, spec: str, join: str, columns: str, out: str) -> None:
    """Two runs give what DuckDB gives; the names that came in between count for the second."""
    _pipeline(sandbox, spec, out, f"SELECT {columns} FROM {join}")
    _names(sandbox, spec, NAMES_1)
    _fly(sandbox, "1", RUN_1)
    _names(sandbox, spec, NAMES_2)
    _fly(sandbox, "2", RUN_2)
    expected = _by_duckdb(join.replace("LEFT SEMI", "SEMI"), columns)
    assert multiset(sandbox.delta("tables/out")) == multiset(expected)


@pytest.mark.sampled
@pytest.mark.conformance("JOIN-01")
@pytest.mark.parametrize("spec", [CSV, PARQUET, DELTA], ids=["csv", "parquet", "delta"])
def test_an_inner_join_reads_the_static_source_anew_at_each_run(sandbox: Sandbox, spec: str) -> None:
    _runs_as(
        sandbox, spec, "flights f JOIN airlines a ON f.carrier = a.carrier", "flight, name",
        "flight BIGINT, name STRING",
    )  # fmt: skip
    assert (3, "American") not in sandbox.delta("tables/out"), "a row met the names of its own run"
    assert (5, "American") in sandbox.delta("tables/out")


@pytest.mark.full
@pytest.mark.conformance("JOIN-02")
def test_a_left_outer_join_keeps_every_row_of_the_stream(sandbox: Sandbox) -> None:
    _runs_as(
        sandbox, DELTA, "flights f LEFT OUTER JOIN airlines a ON f.carrier = a.carrier", "flight, name",
        "flight BIGINT, name STRING",
    )  # fmt: skip
    assert {(2, None), (3, None), (4, None)} <= set(sandbox.delta("tables/out"))


@pytest.mark.full
@pytest.mark.conformance("JOIN-03")
def test_a_left_semi_join_gives_each_matched_row_once(sandbox: Sandbox) -> None:
    _runs_as(
        sandbox, CSV, "flights f LEFT SEMI JOIN airlines a ON f.carrier = a.carrier", "flight, carrier",
        "flight BIGINT, carrier STRING",
    )  # fmt: skip
    assert [flight for flight, _ in sandbox.delta("tables/out")] == [1, 5, 6, 7]


@pytest.mark.full
@pytest.mark.conformance("JOIN-04")
def test_a_static_source_may_stand_on_the_left_of_an_inner_join(sandbox: Sandbox) -> None:
    _runs_as(
        sandbox, PARQUET, "airlines a JOIN flights f ON f.carrier = a.carrier", "name, flight",
        "name STRING, flight BIGINT",
    )  # fmt: skip
    assert ("United Express", 1) in sandbox.delta("tables/out")


@pytest.mark.full
@pytest.mark.conformance("JOIN-05")
def test_a_right_outer_join_keeps_every_row_of_the_stream_on_its_right(sandbox: Sandbox) -> None:
    _runs_as(
        sandbox, DELTA, "airlines a RIGHT OUTER JOIN flights f ON f.carrier = a.carrier", "name, flight",
        "name STRING, flight BIGINT",
    )  # fmt: skip
    assert {(None, 2), (None, 3), (None, 4)} <= set(sandbox.delta("tables/out"))


@pytest.mark.sampled
@pytest.mark.conformance("JOIN-06")
@pytest.mark.parametrize(
    ("join", "reason", "way_out"),
    [
        ("flights f RIGHT OUTER JOIN airlines a", "RIGHT OUTER join of a stream with a static", "LEFT OUTER"),
        ("flights f FULL OUTER JOIN airlines a", "FULL OUTER join of a stream with a static", "LEFT OUTER"),
        ("airlines a LEFT OUTER JOIN flights f", "LEFT OUTER join of a static with a stream", "RIGHT OUTER"),
        ("airlines a FULL OUTER JOIN flights f", "FULL OUTER join of a static with a stream", "RIGHT OUTER"),
        ("airlines a LEFT SEMI JOIN flights f", "LEFT SEMI join of a static with a stream", "inner join"),
        ("airlines a LEFT ANTI JOIN flights f", "LEFT ANTI join of a static with a stream", "in its table"),
    ],
)
def test_kinds_that_ask_for_unmatched_static_rows_are_refused(
    sandbox: Sandbox, join: str, reason: str, way_out: str
) -> None:
    column = "a.name" if join.startswith("airlines") else "coalesce(a.name, f.carrier) AS name"
    _pipeline(sandbox, DELTA, "name STRING", f"SELECT {column} FROM {join} ON f.carrier = a.carrier")
    _names(sandbox, DELTA, NAMES_1)
    sandbox.land_json("landing/flights/1.json", [{"flight": 1, "carrier": "UA"}])
    error = refused(sandbox, "named", "join.static", TransformError)
    assert reason in error.what
    assert "a stream does not end" in error.what
    assert way_out in error.do
