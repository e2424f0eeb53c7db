"""Revisions of the metastore's schema, oldest first.

The list stands here, apart from Alembic, so that opening a current metastore imports none of it; a test
compares it with the revision files.
"""

REVISIONS = ("0001", "0002", "0003", "0004", "0005", "0006", "0007", "0008", "0009", "0010")
HEAD = REVISIONS[-1]
