"""How fast staged files become visible beside a Spark session, already warm, that writes the same rows.

    python -m tests.benchmarks.publish [ROWS ...]

Delta: the commit that adds them, beside reading them and appending the rows; PostgreSQL: beside Spark's JDBC
writer.
"""

from __future__ import annotations

import sys
import tempfile
import time
from itertools import count
from pathlib import Path

import psycopg
from pydantic import SecretStr
from pyspark.sql import DataFrame, SparkSession

from drawdown.changes.protocol import Commit, Staged
from drawdown.delta.table import DeltaTableFiles
from drawdown.metastore.records import StagedFile
from drawdown.sinks.delta.publish import DeltaTarget
from drawdown.sinks.postgres.ledger import PostgresLedger
from drawdown.sinks.postgres.publish import PostgresTarget
from drawdown.sinks.postgres.table import PostgresTable
from drawdown.spec import Database
from drawdown.storage import Storage
from drawdown.testing.servers.postgres import PostgresServer
from tests.benchmarks.comparison import Comparison, in_turns
from tests.benchmarks.page import present
from tests.support.registered import change
from tests.support.spark import start_session

SIZES = (20_000, 200_000, 2_000_000)
FILES = 4
COLUMNS = (
    "id bigint, at timestamptz, origin text, delay integer, distance double precision, price numeric(10,2)"
)


def main(*sizes: int) -> int:
    spark = start_session()
    with PostgresServer() as server, tempfile.TemporaryDirectory() as folder:
        found = [
            each
            for rows in sizes
            for each in (
                _into_delta(spark, Path(folder) / f"delta{rows}", rows),
                _into_postgres(spark, server, Path(folder) / f"postgres{rows}", rows),
            )
        ]
    spark.stop()
    return present("publish", found)


def _rows(spark: SparkSession, rows: int) -> DataFrame:
    return spark.range(rows).selectExpr(
        "id",
        "timestamp_seconds(1356998400 + id) AS at",
        "concat('airport ', id % 300) AS origin",
        "CAST(id % 120 AS INT) AS delay",
        "id * 1.5D AS distance",
        "CAST(id % 100000 / 100 AS DECIMAL(10,2)) AS price",
    )


def _staged(folder: Path, rows: int, action: bool) -> Staged:
    """The parquet files of a folder, as a drain leaves them."""
    files = [
        StagedFile("output", str(path), path.stat().st_size, rows // FILES, _action(path) if action else {})
        for path in sorted(folder.glob("*.parquet"))
    ]
    return Staged([0], [(0, file) for file in files])


def _action(path: Path) -> dict[str, object]:
    """What the table's log will say of it."""
    info = path.stat()
    return {"path": path.name, "size": info.st_size, "modificationTime": info.st_mtime_ns // 1_000_000}


def _into_delta(spark: SparkSession, folder: Path, rows: int) -> Comparison:
    frame = _rows(spark, rows)
    numbers = count()

    def ours(turn: int) -> float:
        place = folder / f"ours{turn}"
        frame.repartition(FILES).write.parquet(str(place))
        table = DeltaTableFiles(str(place))
        table.create(frame.schema.json(), [], "rows")
        staged = _staged(place, rows, action=True)
        begun = time.monotonic()
        DeltaTarget(Storage(str(folder)), table).make_visible(
            staged, Commit("benchmark", next(numbers), change())
        )
        return time.monotonic() - begun

    def rival(turn: int) -> float:
        begun = time.monotonic()
        spark.read.parquet(*map(str, (folder / f"ours{turn}").glob("*.parquet"))).write.format("delta").mode(
            "append"
        ).save(str(folder / "rival"))
        return time.monotonic() - begun

    pairs = in_turns(ours, rival)
    return Comparison(f"{rows:,} rows into Delta", "a warm Spark appends them", "s", *_ways(pairs))


def _into_postgres(spark: SparkSession, server: PostgresServer, folder: Path, rows: int) -> Comparison:
    _rows(spark, rows).repartition(FILES).write.parquet(str(folder))
    staged = _staged(folder, rows, action=False)
    pairs = in_turns(lambda _: _publish(server, folder, staged), lambda _: _jdbc(server, spark, folder))
    what = f"{rows:,} rows into PostgreSQL"
    return Comparison(what, "a warm Spark's JDBC writer, batches of 10,000", "s", *_ways(pairs))


def _ways(pairs: list[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [ours for ours, _ in pairs], [rival for _, rival in pairs]


def _publish(server: PostgresServer, folder: Path, staged: Staged) -> float:
    url = server.create_database()
    database = Database(
        host=server.host,
        port=server.port,
        dbname=url.rpartition("/")[2],
        user=server.user,
        password=SecretStr(server.password),
    )
    with psycopg.connect(url) as connection:
        connection.execute(f"CREATE TABLE public.out ({COLUMNS})".encode())
        PostgresLedger("public", "out").claim(connection)
    target = PostgresTarget(Storage(str(folder)), database, PostgresTable("public", "out"))
    begun = time.monotonic()
    target.make_visible(staged, Commit("benchmark", 0, change()))
    return time.monotonic() - begun


def _jdbc(server: PostgresServer, spark: SparkSession, folder: Path) -> float:
    url = server.create_database()
    with psycopg.connect(url) as connection:
        connection.execute(f"CREATE TABLE public.out ({COLUMNS})".encode())
    address = f"jdbc:postgresql://{server.host}:{server.port}/{url.rpartition('/')[2]}"
    begun = time.monotonic()
    spark.read.parquet(str(folder)).write.jdbc(
        address,
        "public.out",
        mode="append",
        properties={
            "user": server.user,
            "password": server.password,
            "driver": "org.postgresql.Driver",
            "batchsize": "10000",
            "reWriteBatchedInserts": "true",
        },
    )
    return time.monotonic() - begun


if __name__ == "__main__":
    sys.exit(main(*(map(int, sys.argv[1:]) if sys.argv[1:] else SIZES)))
