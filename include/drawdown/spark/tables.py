"""Tables by name: a Delta table has the same name in the specs and in Spark's catalog."""

from __future__ import annotations

import re

from pyspark.sql import SparkSession

from drawdown.errors import RefusedError


def know_table(session: SparkSession, name: str, uri: str) -> None:
    """Register an existing Delta table by name, for this application or, with a metastore, for all.

    Raises:
        RefusedError: ``sink.table-taken`` when the name already belongs to another table.
    """
    session.sql(f"CREATE TABLE IF NOT EXISTS `{name}` USING delta LOCATION '{_quoted(uri)}'")
    location = session.sql(f"DESCRIBE DETAIL `{name}`").select("location").collect()[0][0]
    if _plain(location) != _plain(uri):
        raise RefusedError(
            "sink.table-taken",
            f"Spark's catalog has another table with the name {name}",
            where=location,
            do="choose another `table:`, or drop that table from the catalog",
        )


def _plain(uri: str) -> str:
    """Return a location as it is compared: without ``file:``, and with single slashes behind the scheme."""
    return re.sub("(?<!:)/+", "/", re.sub("^file:/*", "/", uri)).rstrip("/")


def _quoted(uri: str) -> str:
    return uri.replace("\\", "\\\\").replace("'", "\\'")
