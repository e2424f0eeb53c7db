"""A server that takes OpenLineage events over HTTP, hangs, or answers with an error; and the check of events.

The schemas are copies of the project's own (tests/fixtures/openlineage, Apache-2.0), of the commit 8f02abf.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from referencing import Registry, Resource

ROOT = Path(__file__).parents[2]
_SCHEMAS = ROOT / "tests" / "fixtures" / "openlineage"
_OWN = ROOT / "docs" / "schema" / "lineage-slice.schema.json"
_CORE = "https://openlineage.io/spec/2-0-2/OpenLineage.json"


@dataclass
class LineageServer:
    """What it has got.

    Attributes:
        status: its answer.
        hangs: whether it answers only when it ends.
    """

    url: str = ""
    status: int = 201
    hangs: bool = False
    events: list[dict[str, Any]] = field(default_factory=list)
    asked: int = 0
    paths: set[str] = field(default_factory=set)
    keys: set[str | None] = field(default_factory=set)
    ends: threading.Event = field(default_factory=threading.Event)

    def of(self, job: str, type: str | None = None) -> list[dict[str, Any]]:
        """The events of a job, of one type or all."""
        return [e for e in self.events if e["job"]["name"] == job and type in (None, e["eventType"])]

    def last(self, job: str) -> dict[str, Any]:
        """The event of a job that came last."""
        return self.of(job)[-1]


@contextmanager
def lineage_server() -> Iterator[LineageServer]:
    """A server of 127.0.0.1 for the block."""
    found = LineageServer()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            found.asked += 1
            found.paths.add(self.path)
            found.keys.add(self.headers["Authorization"])
            if found.hangs:
                found.ends.wait(60)
                return
            if found.status < 300:
                found.events.append(json.loads(body))
            self.send_response(found.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield found
    finally:
        found.ends.set()
        server.shutdown()
        server.server_close()
        thread.join()


def check_event(event: dict[str, Any]) -> set[str]:
    """Assert that an event, and each facet by the schema that it names, is as the schemas say.

    Returns:
        the names of the facets that were checked.
    """
    _check(event, event["schemaURL"])
    assert event["schemaURL"] == f"{_CORE}#/$defs/RunEvent"
    datasets = [*event.get("inputs", ()), *event.get("outputs", ())]
    holders = [event["run"].get("facets"), event["job"].get("facets")]
    holders += [each.get(kind) for each in datasets for kind in ("facets", "inputFacets", "outputFacets")]
    checked = set()
    for facets in holders:
        for name, facet in (facets or {}).items():
            _check(facet, facet["_schemaURL"])
            checked.add(name)
    return checked


def _check(instance: Any, url: str) -> None:
    validator = Draft202012Validator(
        {"$ref": url}, registry=_registry(), format_checker=Draft202012Validator.FORMAT_CHECKER
    )
    errors = [f"{'/'.join(map(str, e.absolute_path))}: {e.message}" for e in validator.iter_errors(instance)]
    assert not errors, f"{url}\n" + "\n".join(errors) + f"\n{json.dumps(instance, indent=1)}"


@cache
def _registry() -> Registry[Any]:
    files = [*_SCHEMAS.glob("*.json"), *(_SCHEMAS / "facets").glob("*.json"), _OWN]
    contents = [json.loads(path.read_text()) for path in files]
    return Registry().with_resources((each["$id"], Resource.from_contents(each)) for each in contents)
