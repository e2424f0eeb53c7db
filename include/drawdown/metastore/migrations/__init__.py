"""Revisions of the metastore's schema, oldest first.

The lists are here, apart from Alembic, so that opening a current metastore does not import Alembic. A test
compares them with the revision files.
"""

REVISIONS = (
    "0001",
    "0002",
    "0003",
    "0004",
    "0005",
    "0006",
    "0007",
    "0008",
    "0009",
    "0010",
    "0011",
    "0012",
    "0013",
    "0014",
    "0015",
    "0016",
    "0017",
    "0018",
    "0019",
)
HEAD = REVISIONS[-1]
ADDING = frozenset({"0011", "0012", "0013", "0014", "0015", "0016", "0017", "0018", "0019"})
"""Revisions that only add indices, tables, columns with a default: programs of before them continue."""
OPTIONAL: frozenset[str] = frozenset()
"""Revisions that this program does not need, such as an index: it works with a store that lacks them."""


def oldest_program() -> str:
    """Return the revision that a program must know to use a store that is at HEAD."""
    return next(each for each in reversed(REVISIONS) if each not in ADDING)


def needed_behind(revision: str | None) -> list[str]:
    """Return the revisions that this program needs and a store at this one lacks; none for a newer store."""
    if revision not in REVISIONS:
        return []
    missing = REVISIONS[REVISIONS.index(revision) + 1 :]
    return [each for each in missing if each not in OPTIONAL]
