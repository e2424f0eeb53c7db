"""How fast rows get into PostgreSQL: a publish of staged files beside Spark's own JDBC writer, in one run.

``python tests/benchmarks/postgres_publish.py [ROWS]`` starts a server of its own and writes the same parquet
files both ways, three times each in turn; its last line is the ratio of the medians.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

import psycopg
from pydantic import SecretStr

from drawdown.machine.postgres import PostgresServer
from drawdown.metastore.records import StagedFile
from drawdown.publishing.postgres_ledger import Ledger
from drawdown.publishing.postgres_table import PostgresTable
from drawdown.publishing.postgres_target import PostgresTarget
from drawdown.publishing.target import Commit, Staged
from drawdown.spec import Database
from drawdown.storage import Storage
from tests.support.spark import start_session

COLUMNS = (
    "id bigint, at timestamptz, origin text, delay integer, distance double precision, price numeric(10,2)"
)
ROUNDS = 3


def main(rows: int) -> None:
    spark = start_session()
    with PostgresServer() as server, tempfile.TemporaryDirectory() as folder:
        frame = spark.range(rows).selectExpr(
            "id",
            "timestamp_seconds(1356998400 + id) AS at",
            "concat('airport ', id % 300) AS origin",
            "CAST(id % 120 AS INT) AS delay",
            "id * 1.5D AS distance",
            "CAST(id % 100000 / 100 AS DECIMAL(10,2)) AS price",
        )
        frame.repartition(2).write.parquet(f"{folder}/rows")
        files = [
            (0, StagedFile("output", str(path), path.stat().st_size, 1, {}))
            for path in sorted(Path(folder, "rows").glob("*.parquet"))
        ]
        ways: dict[str, list[float]] = {"publish": [], "jdbc": []}
        for _ in range(ROUNDS):
            ways["publish"].append(rows / _publish(server, folder, files))
            ways["jdbc"].append(rows / _jdbc(server, spark, folder))
    spark.stop()
    middle = {way: statistics.median(rates) for way, rates in ways.items()}
    for way, rate in middle.items():
        print(f"{way}: {rate:,.0f} rows/s (median of {ROUNDS}, {rows:,} rows of 6 columns)")
    print(f"publish/jdbc: {middle['publish'] / middle['jdbc']:.2f}")


def _publish(server: PostgresServer, folder: str, files: list[tuple[int, StagedFile]]) -> float:
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
        Ledger("public", "out").claim(connection)
    target = PostgresTarget(Storage(folder), database, PostgresTable("public", "out"))
    started = time.monotonic()
    target.make_visible(Staged([0], files), Commit("benchmark", 0, 1))
    return time.monotonic() - started


def _jdbc(server: PostgresServer, spark: object, folder: str) -> float:
    url = server.create_database()
    with psycopg.connect(url) as connection:
        connection.execute(f"CREATE TABLE public.out ({COLUMNS})".encode())
    address = f"jdbc:postgresql://{server.host}:{server.port}/{url.rpartition('/')[2]}"
    started = time.monotonic()
    spark.read.parquet(f"{folder}/rows").write.jdbc(  # type: ignore[attr-defined]
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
    return time.monotonic() - started


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
