"""The names of what a pipeline reads and writes, by OpenLineage's naming conventions.

https://openlineage.io/docs/spec/naming: a file or table of files is its path below ``file`` or its bucket, a
topic belongs to ``kafka://host:port``, a table of PostgreSQL is ``database.schema.table``. What has no such
name (a Python source, the user's own sink) is named after the file with its code.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

from drawdown.sinks.locations import output_uri, quarantine_uri
from drawdown.spec import Pipeline, Project, Source
from drawdown.storage import Storage

_GLOB = re.compile(r"[*?{\[]")
_OWN_CODE = "python"
"""Namespace of sources and sinks that are code of the project."""


@dataclass(frozen=True)
class DatasetName:
    """A dataset: the namespace of where it is, and its name there."""

    namespace: str
    name: str


def inputs_of(project: Project, pipeline: Pipeline) -> dict[str, tuple[DatasetName, ...]]:
    """Return by source what it reads; a Kafka source may read several topics."""
    return {name: tuple(_read(project, pipeline, name, s)) for name, s in pipeline.sources.items()}


def output_of(project: Project, pipeline: Pipeline) -> DatasetName:
    """Return where the rows of a pipeline go; of a rebuild's version, the table that it fills."""
    sink = pipeline.sink
    if sink.topic is not None:
        return DatasetName(_broker(project, sink.broker), sink.topic)
    if sink.path is not None:
        return file_dataset(output_uri(project, pipeline))
    if sink.table is not None and sink.database in project.databases:
        database = project.databases[sink.database]
        return DatasetName(f"postgres://{database.host}:{database.port}", f"{database.dbname}.{sink.table}")
    return _of_code(pipeline, sink.function or sink.format)


def quarantine_of(project: Project, pipeline: Pipeline) -> DatasetName:
    """Return the table of the rows that were set aside."""
    return file_dataset(quarantine_uri(project, pipeline))


def file_dataset(path: str) -> DatasetName:
    """Return the name of a folder or table by its path or address."""
    if "://" not in path:
        return DatasetName("file", _folder(path))
    address = urlsplit(path)
    if address.scheme == "file":
        return DatasetName("file", _folder(address.path))
    scheme = "s3" if address.scheme == "s3a" else address.scheme
    # A login in an address is refused by the spec; a container of abfs: is before the @.
    return DatasetName(f"{scheme}://{address.netloc}", _folder(address.path).strip("/") or "/")


def _read(project: Project, pipeline: Pipeline, name: str, source: Source) -> Iterable[DatasetName]:
    if source.path is not None:
        yield file_dataset(Storage.of_source(project, source).path(source.path))
    elif topics := _topics(source):
        for topic in topics:
            yield DatasetName(_broker(project, source.broker), topic)
    else:
        yield _of_code(pipeline, source.reader or f"{source.format}/{name}")


def _topics(source: Source) -> list[str]:
    options = {key.lower(): str(value) for key, value in source.options.items()}
    if "subscribe" in options:
        return [topic.strip() for topic in options["subscribe"].split(",") if topic.strip()]
    if "assign" in options:
        return sorted(json.loads(options["assign"]))
    return [options["subscribepattern"]] if "subscribepattern" in options else []


def _broker(project: Project, name: str) -> str:
    broker = project.brokers.get(name)
    return f"kafka://{broker.bootstrap_servers.split(',')[0]}" if broker else f"kafka://{name}"


def _of_code(pipeline: Pipeline, name: str) -> DatasetName:
    return DatasetName(_OWN_CODE, f"{pipeline.name}/{name}")


def _folder(path: str) -> str:
    """Return the path up to the first folder with a pattern."""
    if found := _GLOB.search(path):
        path = path[: found.start()].rpartition("/")[0]
    return path.rstrip("/") or "/"
