"""Tables by name: what the specs call a Delta table, Spark's catalog calls it too."""

from __future__ import annotations

from pyspark.sql import SparkSession

from drawdown.errors import RefusedError


def know_table(session: SparkSession, name: str, uri: str) -> None:
    """Make an existing Delta table known by a name, for this application or, with a metastore, for all.

    Raises:
        RefusedError: ``sink.table-taken`` when the name means another table there.
    """
    session.sql(f"CREATE TABLE IF NOT EXISTS `{name}` USING delta LOCATION '{_quoted(uri)}'")
    location = session.sql(f"DESCRIBE DETAIL `{name}`").select("location").collect()[0][0]
    if location.removeprefix("file:").rstrip("/") != uri.removeprefix("file:").rstrip("/").replace("//", "/"):
        raise RefusedError(
            "sink.table-taken",
            f"Spark's catalog knows another table by the name {name}",
            where=location,
            do="choose another `table:`, or drop that table from the catalog",
        )


def _quoted(uri: str) -> str:
    return uri.replace("\\", "\\\\").replace("'", "\\'")
