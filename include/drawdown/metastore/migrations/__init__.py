"""Revisions of the metastore's schema, oldest first.

The lists stand here, apart from Alembic, so that opening a current metastore imports none of it; a test
compares them with the revision files.
"""

REVISIONS = ("0001", "0002", "0003", "0004", "0005", "0006", "0007", "0008", "0009", "0010", "0011", "0012")
HEAD = REVISIONS[-1]
ADDING = frozenset({"0011", "0012"})
"""Those that only add indices, tables, nullable columns: a program of the revision before goes on."""
OPTIONAL: frozenset[str] = frozenset()
"""Those that this program can do without, like an index: it works with a store that lacks them."""


def oldest_program() -> str:
    """The revision that a program must know to go on with a store that is at HEAD."""
    return next(each for each in reversed(REVISIONS) if each not in ADDING)


def needed_behind(revision: str | None) -> list[str]:
    """Revisions that this program needs and a store at this one lacks; none when the store is newer."""
    if revision not in REVISIONS:
        return []
    missing = REVISIONS[REVISIONS.index(revision) + 1 :]
    return [each for each in missing if each not in OPTIONAL]
