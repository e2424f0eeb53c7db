"""What a request to an S3 server is about, read from its method and target, for counts and rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal
from urllib.parse import parse_qs, unquote, urlsplit

Kind = Literal["LIST", "GET", "HEAD", "PUT", "POST", "DELETE"]


@dataclass(frozen=True)
class S3Request:
    """One request of a path-style address, ``/bucket/key?query``.

    Attributes:
        key: of the object; of a listing, its prefix.
    """

    method: str
    bucket: str
    key: str
    query: frozenset[str]

    @classmethod
    def of(cls, method: str, target: str) -> S3Request:
        """Return what a request line is about."""
        parts = urlsplit(f"//server{target}" if target.startswith("/") else target)
        bucket, _, key = unquote(parts.path).lstrip("/").partition("/")
        query = parse_qs(parts.query, keep_blank_values=True)
        return cls(method, bucket, key or query.get("prefix", [""])[0], frozenset(query))

    @property
    def kind(self) -> Kind:
        """What is paid for: LIST is a GET of a bucket, and DELETE also the POST that deletes many objects."""
        match self.method:
            case "GET":
                return "LIST" if self._of_bucket else "GET"
            case "POST":
                return "DELETE" if "delete" in self.query else "POST"
            case "HEAD" | "PUT" | "DELETE":
                return self.method
        raise ValueError(f"S3 has no method {self.method}")

    def concerns(self, key: str) -> bool:
        """Whether the key fits a pattern in which ``*`` also stands for slashes."""
        return fnmatchcase(self.key, key)

    @property
    def _of_bucket(self) -> bool:
        return not self.key or bool(self.query & {"list-type", "prefix", "uploads", "versions"})


def counted(requests: Iterable[S3Request], key: str = "*") -> Counter[Kind]:
    """Return how many requests of each kind concern such keys."""
    return Counter(request.kind for request in requests if request.concerns(key))
