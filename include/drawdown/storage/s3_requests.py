"""Requests to S3 that `obstore` has no call for, signed with the key of `storages:` or of the environment.

A key that only the machine's role gives is not looked up here: `S3Bucket.of` returns None then.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Self
from urllib.parse import quote, urlencode, urlsplit

from drawdown.storage.object_errors import no_bucket, of_request

_TIMEOUT = 30.0
_EMPTY = hashlib.sha256(b"").hexdigest()


@dataclass(frozen=True)
class S3Bucket:
    """One bucket, how it is reached, and with which key."""

    name: str
    endpoint: str
    region: str
    path_style: bool
    access_key: str
    secret_key: str = field(repr=False)
    session_token: str | None = field(repr=False)

    @classmethod
    def of(cls, address: str, options: Mapping[str, str]) -> Self | None:
        """Return the bucket of an address; None for another kind of storage, or without a key.

        Args:
            options: as `object_options` returns them.
        """
        if not address.startswith(("s3://", "s3a://")):
            return None
        given = options if options.get("aws_access_key_id") else _environment()
        if not given.get("aws_access_key_id") or not given.get("aws_secret_access_key"):
            return None
        region = options.get("aws_region") or os.environ.get("AWS_REGION", "us-east-1")
        return cls(
            urlsplit(address).netloc,
            options.get("aws_endpoint") or f"https://s3.{region}.amazonaws.com",
            region,
            options.get("aws_virtual_hosted_style_request") == "false",
            given["aws_access_key_id"],
            given["aws_secret_access_key"],
            given.get("aws_session_token"),
        )

    def send(self, method: str, key: str, query: Mapping[str, str]) -> bytes:
        """Send a request without a body and return the answer's body.

        Raises:
            FileNotFoundError: there is no such object or upload.
            SourceError: ``storage.no-bucket``, ``storage.denied``, ``storage.unreachable``.
        """
        url = urlsplit(self.endpoint)
        host = url.netloc if self.path_style else f"{self.name}.{url.netloc}"
        path = quote(f"/{self.name}/{key}".rstrip("/") if self.path_style else f"/{key}", safe="/-_.~")
        asked = urlencode(sorted(query.items()), quote_via=quote, safe="-_.~")
        kind = HTTPConnection if url.scheme == "http" else HTTPSConnection
        connection, where = kind(host, timeout=_TIMEOUT), f"s3://{self.name}/{key}"
        try:
            connection.request(method, f"{path}?{asked}", headers=self._signed(method, host, path, asked))
            answer = connection.getresponse()
            body = answer.read()
        except (OSError, HTTPException) as error:
            raise of_request(str(error), where) from None
        finally:
            connection.close()
        if answer.status >= 300:
            text = f"status code: {answer.status} {body.decode(errors='replace')}"
            if "NoSuchBucket" in text:
                raise no_bucket(where)
            raise FileNotFoundError(where) if answer.status == 404 else of_request(text, where)
        return body

    def _signed(self, method: str, host: str, path: str, query: str) -> dict[str, str]:
        """Return the headers, with a signature of AWS's version 4 over all of them."""
        now = datetime.now(UTC)
        day, second = f"{now:%Y%m%d}", f"{now:%Y%m%dT%H%M%SZ}"
        headers = {"host": host, "x-amz-content-sha256": _EMPTY, "x-amz-date": second}
        if self.session_token:
            headers["x-amz-security-token"] = self.session_token
        names = ";".join(headers)
        listed = "".join(f"{name}:{value}\n" for name, value in headers.items())
        request = "\n".join((method, path, query, listed, names, _EMPTY))
        scope = f"{day}/{self.region}/s3/aws4_request"
        text = "\n".join(("AWS4-HMAC-SHA256", second, scope, hashlib.sha256(request.encode()).hexdigest()))
        key = f"AWS4{self.secret_key}".encode()
        for part in (*scope.split("/"), text):
            key = hmac.digest(key, part.encode(), "sha256")
        credential = f"Credential={self.access_key}/{scope}"
        signature = f"{credential}, SignedHeaders={names}, Signature={key.hex()}"
        return {**headers, "authorization": f"AWS4-HMAC-SHA256 {signature}"}


def _environment() -> dict[str, str]:
    names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
    return {name.lower(): os.environ[name] for name in names if os.environ.get(name)}
