"""How each bucket is reached in this process: the options of obstore and delta-rs, and of Hadoop's S3A.

A Delta table is named by its address alone, in a hundred places, and so are the paths that Spark gets. How a
bucket is reached is therefore known to the process, from where its storage was opened, as Hadoop does it too
(docs/decisions/0032).
"""

from __future__ import annotations

from urllib.parse import urlsplit

from drawdown.spec.connections.object_storage import ObjectStorage, is_object_storage

_known: dict[str, ObjectStorage] = {}


def remember(address: str, access: ObjectStorage | None) -> None:
    """Reach the bucket of this address so from now on; None changes nothing."""
    if access is not None:
        _known[_bucket(address)] = access


def object_options(address: str) -> dict[str, str]:
    """Return the options of obstore and delta-rs for a table or folder; empty for one on a disk.

    Contains the key in plain text: never for a command line or a log.
    """
    if not is_object_storage(address):
        return {}
    access = _known.get(_bucket(address))
    if address.startswith("gs"):
        return {} if access is None else access.google_options
    return {} if access is None else access.s3_options


def _bucket(address: str) -> str:
    return urlsplit(address).netloc
