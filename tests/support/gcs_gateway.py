"""A gateway in front of fake-gcs-server, which adds the requests that server does not know.

delta-rs and obstore speak the XML API of Google Cloud Storage, Hadoop's client the JSON API. fake-gcs-server
has the JSON API, and of the XML API only reading. What is missing is asked for by its JSON API here, so that
objects and their conditions (`ifGenerationMatch`) are the server's: PUT, conditional PUT, COPY, uploads in
parts, listings, and JSON's `moveTo`. Everything else passes unchanged.
"""

from __future__ import annotations

import base64
import json
import re
import sys
import uuid
from collections import defaultdict
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit
from xml.etree import ElementTree
from xml.sax.saxutils import escape

_JSON_API = ("storage", "upload", "download", "batch", "_internal")
_OF_ONE_HOP = ("connection", "keep-alive", "transfer-encoding", "content-length")
_NAMES = {404: "NoSuchKey", 412: "PreconditionFailed"}
Answer = tuple[int, dict[str, str], bytes]


class Gateway(ThreadingHTTPServer):
    """Listens for clients of both APIs; uploads in parts wait in its memory."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, host: str, port: int, upstream: str, account: str = "") -> None:
        super().__init__((host, port), _Handler)
        self.upstream, self.account = upstream, account
        self.token = uuid.uuid4().hex
        self.parts: dict[str, dict[int, bytes]] = defaultdict(dict)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def _serve(self) -> None:
        # Not self.path, in which slashes at the beginning are made one.
        target = urlsplit(self.requestline.split()[1])
        first, _, rest = target.path.lstrip("/").partition("/")
        self._query = dict(parse_qsl(target.query, keep_blank_values=True))
        self._body = self._read_body()
        if target.path == "/token":
            answer = self._token()
        elif not self._may_ask():
            answer = _refused(401, "AuthenticationRequired", first not in _JSON_API)
        elif first not in _JSON_API:
            answer = self._xml(unquote(first), unquote(rest))
        elif "/moveTo/o/" in target.path:
            answer = self._moved(target.path)
        else:
            answer = self._ask(self.command, f"{target.path}?{target.query}", self._body, dict(self.headers))
        self._say(answer)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = do_PATCH = _serve

    def log_message(self, format: str, *arguments: object) -> None:
        """Write no log."""

    @property
    def _gateway(self) -> Gateway:
        return cast("Gateway", self.server)

    def _token(self) -> Answer:
        """Answer as Google's token server: who signs as the account gets a token."""
        if not self._signed(dict(parse_qsl(self._body.decode())).get("assertion", "")):
            return 400, {"Content-Type": "application/json"}, b'{"error": "invalid_grant"}'
        said = {"access_token": self._gateway.token, "token_type": "Bearer", "expires_in": 3600}
        return 200, {"Content-Type": "application/json"}, json.dumps(said).encode()

    def _may_ask(self) -> bool:
        """Whether the request has a token, or one that the account has signed itself; or needs none."""
        if not self._gateway.account:
            return True
        # Each request of a batch has a token of its own, and the batch none.
        inner = re.findall(
            r"^authorization: (Bearer .*?)\r?$", self._body.decode(errors="replace"), re.M | re.I
        )
        given = inner if self.path.startswith("/batch/") else [self.headers.get("Authorization", "")]
        tokens = [each.removeprefix("Bearer ") for each in given]
        return bool(tokens) and all(each == self._gateway.token or self._signed(each) for each in tokens)

    def _signed(self, token: str) -> bool:
        """Whether the account signed this token; its signature is taken for right."""
        payload = token.split(".")[1] if token.count(".") == 2 else ""
        said = json.loads(base64.urlsafe_b64decode(payload + "==")) if payload else {}
        return bool(said.get("iss") == self._gateway.account)

    def _xml(self, bucket: str, key: str) -> Answer:
        """Answer a request of the XML API."""
        if not key:
            return self._listed(bucket)
        if self.command in ("GET", "HEAD"):
            kept = {name: value for name, value in self.headers.items() if name.lower() in ("range", "host")}
            return self._ask(self.command, f"/download{_object(bucket, key)}", b"", kept)
        if "uploads" in self._query or "uploadId" in self._query:
            return self._in_parts(bucket, key)
        if self.command == "DELETE":
            return _in_xml(self._ask("DELETE", _object(bucket, key)))
        if source := self.headers.get("x-goog-copy-source"):
            if self.headers.get("x-goog-if-generation-match"):
                return 501, {}, b""  # the server ignores conditions of copies
            of_bucket, _, of_key = unquote(source).lstrip("/").partition("/")
            return _in_xml(self._copied(_object(of_bucket, of_key), _object(bucket, key)))
        return self._put(bucket, key, self._body)

    def _put(self, bucket: str, key: str, body: bytes) -> Answer:
        query = {"uploadType": "media", "name": key}
        if condition := self.headers.get("x-goog-if-generation-match"):
            query["ifGenerationMatch"] = condition
        headers = {"Content-Type": "application/octet-stream"}
        target = f"/upload/storage/v1/b/{quote(bucket)}/o?{urlencode(query)}"
        status, _, said = answer = self._ask("POST", target, body, headers)
        if status >= 300:
            # Of an upload, only the bucket can be missing.
            return _in_xml(answer, {**_NAMES, 404: "NoSuchBucket"})
        made = json.loads(said)
        return 200, {"ETag": f'"{made["etag"]}"', "x-goog-generation": str(made["generation"])}, b""

    def _in_parts(self, bucket: str, key: str) -> Answer:
        parts, upload = self._gateway.parts, self._query.get("uploadId", "")
        if "uploads" in self._query:
            upload = uuid.uuid4().hex
            return _document("InitiateMultipartUploadResult", UploadId=upload)
        if self.command == "DELETE":
            parts.pop(upload, None)
            return 204, {}, b""
        if self.command == "PUT":
            number = int(self._query["partNumber"])
            parts[upload][number] = self._body
            return 200, {"ETag": f'"{number}"'}, b""
        named = ElementTree.fromstring(self._body).iter()
        numbers = [int(each.text or 0) for each in named if each.tag.endswith("PartNumber")]
        held = parts.pop(upload)
        status, headers, said = self._put(bucket, key, b"".join(held[number] for number in numbers))
        if status >= 300:
            return status, headers, said
        status, _, whole = _document("CompleteMultipartUploadResult", ETag=headers["ETag"])
        return status, headers, whole

    def _listed(self, bucket: str) -> Answer:
        after = self._query.get("start-after", "")
        query = {
            "prefix": self._query.get("prefix", ""),
            "delimiter": self._query.get("delimiter", ""),
            "startOffset": after,
            "maxResults": self._query.get("max-keys", "1000"),
            "pageToken": self._query.get("continuation-token", ""),
        }
        asked = urlencode({name: value for name, value in query.items() if value})
        status, _, said = answer = self._ask("GET", f"/storage/v1/b/{quote(bucket)}/o?{asked}")
        if status >= 300:
            return _in_xml(answer, {404: "NoSuchBucket"})
        page = json.loads(said)
        entries = [_entry(each) for each in page.get("items", []) if each["name"] != after]
        entries += [
            f"<CommonPrefixes><Prefix>{escape(each)}</Prefix></CommonPrefixes>"
            for each in page.get("prefixes", [])
        ]
        if token := page.get("nextPageToken"):
            entries.append(f"<NextContinuationToken>{escape(token)}</NextContinuationToken>")
        return (
            200,
            {"Content-Type": "application/xml"},
            f"<ListBucketResult>{''.join(entries)}</ListBucketResult>".encode(),
        )

    def _moved(self, path: str) -> Answer:
        """Do what `moveTo` of the JSON API does; not atomic here."""
        source, _, target = path.partition("/moveTo/o/")
        bucket = source.partition("/o/")[0]
        status, headers, said = answer = self._copied(source, f"{bucket}/o/{target}")
        if status >= 300:
            return answer
        self._ask("DELETE", source)
        return status, headers, json.dumps(json.loads(said)["resource"]).encode()

    def _copied(self, source: str, target: str) -> Answer:
        into = target.removeprefix("/storage/v1")
        return self._ask("POST", f"{source}/rewriteTo{into}", b"{}", {"Content-Type": "application/json"})

    def _ask(
        self, method: str, target: str, body: bytes = b"", headers: dict[str, Any] | None = None
    ) -> Answer:
        """Send a request to the server."""
        kept = {name: value for name, value in (headers or {}).items() if name.lower() not in _OF_ONE_HOP}
        connection = HTTPConnection(self._gateway.upstream, timeout=60)
        try:
            connection.request(method, target.rstrip("?"), body, {**kept, "Content-Length": str(len(body))})
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    def _read_body(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", "").lower():
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        blocks = []
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            blocks.append(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():
            continue  # trailers
        return b"".join(blocks)

    def _say(self, answer: Answer) -> None:
        status, headers, body = answer
        self.send_response_only(status)
        # The answer to a HEAD has the length of what it does not have.
        length = headers.get("Content-Length", "0") if self.command == "HEAD" else str(len(body))
        for name, value in headers.items():
            if name.lower() not in _OF_ONE_HOP:
                self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", length)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def _object(bucket: str, key: str) -> str:
    return f"/storage/v1/b/{quote(bucket, safe='')}/o/{quote(key, safe='')}"


def _entry(found: dict[str, Any]) -> str:
    return (
        f"<Contents><Key>{escape(found['name'])}</Key><Size>{found.get('size', 0)}</Size>"
        f"<LastModified>{found['updated']}</LastModified><ETag>{escape(found['etag'])}</ETag></Contents>"
    )


def _refused(status: int, code: str, in_xml: bool) -> Answer:
    said = {"error": {"code": status, "message": "Anonymous caller does not have access."}}
    answer = status, {"Content-Type": "application/json"}, json.dumps(said).encode()
    return _in_xml(answer, {status: code}) if in_xml else answer


def _document(name: str, **fields: str) -> Answer:
    inner = "".join(f"<{key}>{escape(value)}</{key}>" for key, value in fields.items())
    return 200, {"Content-Type": "application/xml"}, f"<{name}>{inner}</{name}>".encode()


def _in_xml(answer: Answer, names: dict[int, str] = _NAMES) -> Answer:
    """Return a refusal of the JSON API as the XML API says it; what was accepted without its body."""
    status, _, said = answer
    if status < 300:
        return status, {}, b""
    message = said.decode(errors="replace")
    body = f"<Error><Code>{names.get(status, 'Refused')}</Code><Message>{escape(message)}</Message></Error>"
    return status, {"Content-Type": "application/xml"}, body.encode()


if __name__ == "__main__":
    Gateway(sys.argv[1], int(sys.argv[2]), sys.argv[3], *sys.argv[4:]).serve_forever()
