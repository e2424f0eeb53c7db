"""Tells Spark from which name on to list a source's folder: a setting for jvm/java/BucketFiles.java."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote, urlsplit

from pyspark.sql import SparkSession

from drawdown.spec import Pipeline, Project
from drawdown.storage import Glob, Storage

_FROM = "drawdown.files.from"
_FROM_OF_SOURCE = "drawdown.files.from-of-source."


def list_from(session: SparkSession, project: Project, pipeline: Pipeline, names: Mapping[str, str]) -> None:
    """Have the query of this session list its sources behind these names; call it before they are opened.

    Args:
        names: by source, what `listed_from` returns.
    """
    entries = []
    for name, after in names.items():
        session.conf.set(f"{_FROM_OF_SOURCE}{name}", after)
        source = pipeline.sources[name]
        storage = Storage.of_source(project, source)
        if not after or not storage.root.startswith("s3a:"):
            continue
        [glob] = Glob.parse(source.path or "")
        root, key = (urlsplit(storage.path(path)) for path in (glob.prefix, after))
        entries.append(
            "=".join(quote(part, safe="") for part in (root.netloc, _key(f"{root.path}/"), _key(key.path)))
        )
    session.conf.set(_FROM, " ".join(entries))


def listed_behind(session: SparkSession, name: str) -> str:
    """Return the name behind which a source is listed in this session; empty for all its files."""
    return session.conf.get(f"{_FROM_OF_SOURCE}{name}", "") or ""


def _key(path: str) -> str:
    return path.lstrip("/")
