"""The token with which a supervisor reads its master's page, where the pages are open to a network.

Spark's filter (org.apache.spark.ui.JWSFilter) lets in whoever has a token signed with the cluster's key: a
JSON Web Token with HMAC-SHA256 (RFC 7515, 7519).
"""

from __future__ import annotations

import hashlib
import hmac
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode

FILTER = "org.apache.spark.ui.JWSFilter"
KEY = f"spark.{FILTER}.param.secretKey"
"""Spark's setting: the key, as base64 for addresses."""


def token(key: str) -> str:
    """Return the value of the header `Authorization` for a key."""
    signed = b".".join(
        _encoded(json.dumps(part).encode()) for part in ({"alg": "HS256"}, {"sub": "drawdown"})
    )
    signature = hmac.new(urlsafe_b64decode(key + "=" * (-len(key) % 4)), signed, hashlib.sha256).digest()
    return f"Bearer {(signed + b'.' + _encoded(signature)).decode()}"


def _encoded(value: bytes) -> bytes:
    return urlsafe_b64encode(value).rstrip(b"=")
