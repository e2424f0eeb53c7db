"""What waits at a Delta source: the table's version against the offset in the checkpoint.

Source: org.apache.spark.sql.delta.sources.DeltaSourceOffset (Delta 4.4). When a version is read to its
end, the offset names the next one (``reservoirVersion`` n + 1), also for commits without data, so a
table that stands below the offset has nothing new.
"""

from __future__ import annotations

from typing import Any

from drawdown.plan.findings import Finding


def delta_backlog(table: str, offset: dict[str, Any] | None) -> Finding:
    """Versions of a Delta table that the offset does not cover; None: no offset yet.

    Args:
        table: path or URL of the table.
    """
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError, TableNotFoundError

    try:
        version = DeltaTable(table).version()
    except TableNotFoundError:
        return Finding((f"there is no Delta table at {table}",))
    except (DeltaError, OSError) as error:
        return Finding((f"the Delta table at {table} cannot be read: {error}",))
    following = int(offset["reservoirVersion"]) if offset else 0
    waiting = max(version + 1 - following, 0)
    reasons = (f"{waiting} new version(s) of {table}",) if waiting else ()
    return Finding(reasons, {"versions": waiting})
