"""``${NAME}`` and ``${NAME:-default}`` in project.yaml, replaced in values after the YAML was read.

A value always stays text, so the environment cannot add keys or structure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from drawdown.errors import SpecError
from drawdown.spec.reading.yaml_source import Document, KeyPath

AIRFLOWS_OWN = ("AIRFLOW_", "_AIRFLOW_")
"""Prefixes of the variables that contain Airflow's settings, keys and passwords."""

_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^${}]*))?\}")
_WITHOUT_DEFAULT = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*(?::-)?\}")
_CREDENTIALS = re.compile(r"://[^@]*:(?P<password>[^@]*)@|[?&]password=(?P<parameter>[^&]*)")

# Keys of each entry of a mapping that hold a secret.
_SECRETS = (
    ("brokers", "password"),
    ("databases", "password"),
    ("alert_targets", "url"),
    ("storages", "secret_key"),
    ("storages", "session_token"),
)

# Mappings that hold one secret.
_SINGLE_SECRETS = (("metrics", "token"), ("lineage", "api_key"))


def resolve(document: Document, environ: Mapping[str, str]) -> Document:
    """Return the document with every reference replaced. Raises SpecError for an unset or malformed one.

    As in a shell, ``:-`` stands in for a variable that is unset or empty.
    """

    def resolved(value: Any, path: KeyPath) -> Any:
        if isinstance(value, dict):
            return {key: resolved(item, (*path, key)) for key, item in value.items()}
        if isinstance(value, list):
            return [resolved(item, (*path, index)) for index, item in enumerate(value)]
        if isinstance(value, str) and "${" in value:
            return _replaced(document, environ, value, path)
        return value

    return Document(document.shown, resolved(document.data, ()), document.lines)


def references(document: Document) -> frozenset[str]:
    """Return the names of the variables that a document uses, set or not."""

    def found(value: Any) -> Iterator[str]:
        if isinstance(value, dict | list):
            for item in value.values() if isinstance(value, dict) else value:
                yield from found(item)
        elif isinstance(value, str):
            yield from (reference[1] for reference in _REFERENCE.finditer(value))

    return frozenset(found(document.data))


def refuse_written_secrets(document: Document) -> None:
    """Refuse passwords that are not references: a spec is committed, printed and rendered. Raises
    SpecError."""
    for kind, secret in _SECRETS:
        servers = document.data.get(kind)
        for name, server in servers.items() if isinstance(servers, dict) else ():
            password = server.get(secret) if isinstance(server, dict) else None
            if password not in (None, "") and not _is_reference(password):
                raise _written(document, (kind, name, secret))
    for kind, secret in _SINGLE_SECRETS:
        holder = document.data.get(kind)
        word = holder.get(secret) if isinstance(holder, dict) else None
        if word not in (None, "") and not _is_reference(word):
            raise _written(document, (kind, secret))
    metastore = document.data.get("metastore")
    if isinstance(metastore, str):
        # A default is also written in the file, so it is checked like any other text.
        plain = _REFERENCE.sub(lambda found: found[2] or "${REFERENCE}", metastore)
        for found in _CREDENTIALS.finditer(plain):
            if not _is_reference(found["password"] or found["parameter"]):
                raise _written(document, ("metastore",))


def _is_reference(value: object) -> bool:
    return isinstance(value, str) and bool(_WITHOUT_DEFAULT.fullmatch(value))


def _written(document: Document, path: KeyPath) -> SpecError:
    return SpecError(
        "spec.secret",
        f"{_dotted(path)}: the file contains a password",
        where=document.where(path),
        do="write ${NAME}, set the variable NAME in the environment, and change the exposed password",
    )


def _replaced(document: Document, environ: Mapping[str, str], text: str, path: KeyPath) -> str:
    if "${" in _REFERENCE.sub("", text):
        raise SpecError(
            "spec.env-reference",
            f"{_dotted(path)}: not a reference to the environment",
            where=document.where(path),
            do="write ${NAME} or ${NAME:-default}",
        )

    def value_of(found: re.Match[str]) -> str:
        name, default = found[1], found[2]
        if name.startswith(AIRFLOWS_OWN):
            raise SpecError(
                "spec.airflow-keys",
                f"{_dotted(path)}: {name} belongs to Airflow and is not passed to drivers",
                where=document.where(path),
                do="use a variable with another name",
            )
        value = environ.get(name)
        if default is not None:
            return value or default
        if value is None:
            raise SpecError(
                "spec.env-unset",
                f"{_dotted(path)}: the environment variable {name} is not set",
                where=document.where(path),
                do=f"set {name}, or give a default: ${{{name}:-...}}",
            )
        return value

    return _REFERENCE.sub(value_of, text)


def _dotted(path: KeyPath) -> str:
    return ".".join(str(part)[:80] for part in path)
