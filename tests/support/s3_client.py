"""A small S3 client for what tests prepare and look at: signed requests, nothing cached, nothing tried again.

boto3 does not fit beside the pinned python-dateutil, and the clients that Drawdown uses are what is tested.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.client import HTTPConnection, HTTPMessage
from urllib.parse import quote, urlencode, urlsplit
from xml.etree import ElementTree

TIMEOUT = 60.0


class S3Refusal(Exception):
    """An answer that says no.

    Attributes:
        status: of HTTP.
        code: of S3, as ``NoSuchKey``; empty when the answer has no body.
    """

    def __init__(self, status: int, code: str) -> None:
        super().__init__(f"{status} {code}")
        self.status, self.code = status, code


@dataclass(frozen=True)
class Answer:
    """What a server said: any status, also 403 and 503."""

    status: int
    headers: HTTPMessage
    body: bytes

    @property
    def code(self) -> str:
        """S3's name of the error; empty without one."""
        return _text(self.body, "Code") if self.status >= 300 and self.body else ""

    def accepted(self) -> Answer:
        """Return this answer. Raises S3Refusal when it says no."""
        if self.status >= 300:
            raise S3Refusal(self.status, self.code)
        return self


@dataclass(frozen=True)
class S3Client:
    """A client of one bucket. Methods other than ``send`` raise S3Refusal; all raise OSError."""

    endpoint: str
    bucket: str
    access_key: str
    secret_key: str = field(repr=False)
    region: str

    def send(
        self,
        method: str,
        key: str = "",
        body: bytes = b"",
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send one signed request on a connection of its own and return the answer, whatever it is."""
        path = quote(f"/{self.bucket}/{key}" if key else f"/{self.bucket}", safe="/-_.~")
        asked = urlencode(sorted((query or {}).items()), quote_via=quote, safe="-_.~")
        signed = self._signed(method, path, asked, {**(headers or {}), **_hashed(body)})
        connection = HTTPConnection(urlsplit(self.endpoint).netloc, timeout=TIMEOUT)
        try:
            connection.request(method, f"{path}?{asked}" if asked else path, body, signed)
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers, answer.read())
        finally:
            connection.close()

    def put(self, key: str, body: bytes = b"", **headers: str) -> str:
        """Write an object and return its etag; of a header's name, ``_`` stands for ``-``."""
        return self.send("PUT", key, body, headers=_named(headers)).accepted().headers["ETag"]

    def put_new(self, key: str, body: bytes = b"") -> bool:
        """Write an object if there is none, and return whether this request wrote it."""
        answer = self.send("PUT", key, body, headers={"if-none-match": "*"})
        if answer.status in (409, 412):  # 409: another writer of this key has begun and not ended
            return False
        answer.accepted()
        return True

    def get(self, key: str) -> bytes:
        """Return an object's content."""
        return self.send("GET", key).accepted().body

    def delete(self, key: str) -> None:
        """Remove an object; one that does not exist is no error."""
        self.send("DELETE", key).accepted()

    def keys(self, prefix: str = "", start_after: str = "") -> list[str]:
        """Return the keys of all objects, in the server's order."""
        found: list[str] = []
        query = {"list-type": "2", "prefix": prefix, "start-after": start_after}
        while True:
            page = (
                self.send("GET", query={name: value for name, value in query.items() if value})
                .accepted()
                .body
            )
            found += _texts(page, "Contents", "Key")
            if not (token := _text(page, "NextContinuationToken")):
                return found
            query["continuation-token"] = token

    def start_upload(self, key: str) -> str:
        """Begin a multipart upload and return its id."""
        return _text(self.send("POST", key, query={"uploads": ""}).accepted().body, "UploadId")

    def put_part(self, key: str, upload: str, number: int, body: bytes) -> str:
        """Write a part, the first being number 1, and return its etag."""
        query = {"partNumber": str(number), "uploadId": upload}
        return self.send("PUT", key, body, query=query).accepted().headers["ETag"]

    def complete_upload(self, key: str, upload: str, etags: Sequence[str], **headers: str) -> Answer:
        """Make an object of all parts and return the answer, whatever it is."""
        parts = "".join(
            f"<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag></Part>"
            for number, etag in enumerate(etags, 1)
        )
        body = f"<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>".encode()
        return self.send("POST", key, body, query={"uploadId": upload}, headers=_named(headers))

    def uploads(self) -> list[str]:
        """Return the keys of multipart uploads that were neither completed nor aborted."""
        return _texts(self.send("GET", query={"uploads": ""}).accepted().body, "Upload", "Key")

    def _signed(self, method: str, path: str, query: str, headers: Mapping[str, str]) -> dict[str, str]:
        """Return the headers with a signature of version 4 over all of them."""
        now = datetime.now(UTC)
        day, second = now.strftime("%Y%m%d"), now.strftime("%Y%m%dT%H%M%SZ")
        every = {**headers, "host": urlsplit(self.endpoint).netloc, "x-amz-date": second}
        names = ";".join(sorted(every))
        listed = "".join(f"{name}:{every[name].strip()}\n" for name in sorted(every))
        request = "\n".join((method, path, query, listed, names, every["x-amz-content-sha256"]))
        scope = f"{day}/{self.region}/s3/aws4_request"
        text = "\n".join(("AWS4-HMAC-SHA256", second, scope, hashlib.sha256(request.encode()).hexdigest()))
        key = f"AWS4{self.secret_key}".encode()
        for part in (*scope.split("/"), text):
            key = hmac.digest(key, part.encode(), "sha256")
        credential = f"Credential={self.access_key}/{scope}"
        signature = f"{credential}, SignedHeaders={names}, Signature={key.hex()}"
        return {**every, "authorization": f"AWS4-HMAC-SHA256 {signature}"}


def _hashed(body: bytes) -> dict[str, str]:
    return {"x-amz-content-sha256": hashlib.sha256(body).hexdigest()}


def _named(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}


def _text(xml: bytes, name: str) -> str:
    return next((found.text or "" for found in ElementTree.fromstring(xml).iter() if _is(found, name)), "")


def _texts(xml: bytes, outer: str, inner: str) -> list[str]:
    entries = (found for found in ElementTree.fromstring(xml) if _is(found, outer))
    return [part.text or "" for entry in entries for part in entry if _is(part, inner)]


def _is(element: ElementTree.Element, name: str) -> bool:
    """Whether an element has this name, in S3's namespace or in none."""
    return element.tag.rpartition("}")[2] == name
