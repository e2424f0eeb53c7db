"""The project.yaml of a new project whose storage is a bucket."""

from __future__ import annotations

import re

from drawdown.errors import SpecError
from drawdown.spec.connections.object_storage import is_object_storage

_ROOT = re.compile(r"^storage_root: .*\n", re.MULTILINE)
_S3 = """\
    endpoint: ${DRAWDOWN_S3_ENDPOINT:-} # of a server that is not Amazon's
    region: ${AWS_REGION:-us-east-1}
    access_key: ${AWS_ACCESS_KEY_ID:-} # without a key, this machine's role is used
    secret_key: ${AWS_SECRET_ACCESS_KEY:-}
    session_token: ${AWS_SESSION_TOKEN:-}
"""
_GOOGLE = """\
    google_key_file: ${GOOGLE_APPLICATION_CREDENTIALS:-} # without one, this machine's account is used
"""


def with_bucket(text: str, address: str) -> str:
    """Return the text of a project.yaml with this address as storage root, and how its bucket is reached.

    Args:
        address: ``s3://bucket/folder`` or ``gs://bucket/folder``.

    Raises:
        SpecError: ``init.no-bucket``.
    """
    scheme, _, rest = address.partition("://")
    bucket = rest.split("/", 1)[0]
    if not is_object_storage(address) or not re.fullmatch(r"[a-z0-9][a-z0-9._\-]{1,220}", bucket):
        raise SpecError(
            "init.no-bucket",
            f"{address!r} is not the address of a bucket",
            where="--storage",
            do="write s3://bucket/folder or gs://bucket/folder; for a folder leave the option out",
        )
    root = f"storage_root: ${{DRAWDOWN_STORAGE:-{address.rstrip('/')}}}\n"
    reached = f"storages:\n  main: # how the bucket is reached\n    address: {scheme}://{bucket}\n"
    how = _GOOGLE if scheme == "gs" else _S3
    return _ROOT.sub(lambda _: root + reached + how, text, count=1)
