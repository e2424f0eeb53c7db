"""Tells Spark what has arrived at a source, in place of a listing: for jvm/java/ArrivedFiles.java."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from pyspark.sql import SparkSession

from drawdown.sources.files.notified.arrived import ArrivedFiles
from drawdown.spark.object_storage import counts_requests
from drawdown.storage import Storage
from drawdown.workspace import Generation

_NAMES = "drawdown.files.arrived"
_OF_SOURCE = "drawdown.files.arrived-at."


def tell_arrived(session: SparkSession, generation: Generation, arrived: Mapping[str, ArrivedFiles]) -> None:
    """Have this session's query take these files for its sources' folders; call it before they are opened.

    Without Drawdown's own classes Spark lists the folders.
    """
    names = []
    for source, each in arrived.items():
        if each.files is None or not counts_requests(session):
            continue
        storage = Storage.of_source(generation.project, generation.pipeline.sources[source])
        folder = storage.path(generation.pipeline.sources[source].path or "")
        name = quote(f"{storage.root}#{generation.pipeline.name}#{generation.number}#{source}", safe="")
        lines = [folder, *(f"{file.size} {file.mtime_ms} {file.path}" for file in each.files)]
        _texts(session).put(name, "\n".join(lines))
        session.conf.set(f"{_OF_SOURCE}{source}", name)
        names.append(name)
    session.conf.set(_NAMES, " ".join(names))


def told_arrived(session: SparkSession, source: str) -> list[str] | None:
    """Return the paths that `tell_arrived` told of a source; None when it lists its folder."""
    name = session.conf.get(f"{_OF_SOURCE}{source}", "")
    if not name:
        return None
    _, *lines = str(_texts(session).get(name)).split("\n")
    return [line.split(" ", 2)[2] for line in lines]


def _texts(session: SparkSession) -> Any:
    return session.sparkContext._jvm.drawdown.ArrivedFiles  # type: ignore[union-attr]
