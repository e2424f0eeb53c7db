"""Bad values at every key of the spec's files: one error with a known id, a file and a line, and exit code 2.

The cases are made: each key of three whole documents times values that no key, or not this one, can take. A
value that a key does take (any text is a description) is no bad input and is left to the tests of that key.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from drawdown.cli.commands.validate import check
from drawdown.error_registry import error_entries
from drawdown.errors import DrawdownError, SpecError
from drawdown.spec import load_project
from drawdown.spec.reading.yaml_source import KeyPath, parse

PROJECT: dict[str, Any] = {
    "storage_root": "storage",
    "metastore": "sqlite:///metastore.db",
    "brokers": {
        "default": {"bootstrap_servers": "localhost:9092", "security_protocol": "PLAINTEXT"},
        "login": {
            "bootstrap_servers": "localhost:9093", "security_protocol": "SASL_SSL",
            "sasl_mechanism": "SCRAM-SHA-512", "username": "reader", "password": "${BAD_INPUT_PASSWORD}",
        },
    },
    "databases": {"default": {"host": "localhost", "port": 5432, "dbname": "db", "user": "writer"}},
    "clusters": {
        "local": {"kind": "local", "master": "local[2]", "driver_memory": "1g", "conf": {}},
        "big": {"kind": "standalone", "workers": 2, "worker_cores": 2, "worker_memory": "2g"},
    },
    "airflow": {"pool": "drawdown", "retries": 2, "retry_delay": "2 minutes", "execution_timeout": "2 hours"},
    "lease_ttl": "60 seconds",
    "held": "6 days",
    "upkeep": {"schedule": "@daily", "vacuum": "7 days", "records": "90 days"},
    "retention": {"quarantine": "30 days", "verdicts": "30 days"},
    "approvers": ["ann"],
    "pass_environment": ["TZ"],
}  # fmt: skip
PIPELINE: dict[str, Any] = {
    "description": "one",
    "schedule": "@hourly",
    "freshness": "3 hours",
    "owner": "ann",
    "tags": ["a"],
    "sources": {
        "events": {
            "format": "csv", "path": "landing/events", "schema": "events.ddl",
            "options": {"header": True, "maxFilesPerTrigger": 10}, "malformed": "quarantine",
            "settle": "10 seconds", "policy": {"rewritten": "warn", "drift": "warn", "too_old": "warn"},
            "watermark": {"column": "at", "delay": "1 hour", "max_future": "1 hour", "late": "count"},
        },
        "prices": {"format": "parquet", "path": "prices", "schema": "prices.ddl", "static": True},
        "clicks": {
            "format": "kafka", "value": "json", "broker": "default", "schema": "id BIGINT, at TIMESTAMP",
            "options": {"subscribe": "clicks", "maxOffsetsPerTrigger": 100},
        },
    },
    "transform": "transform.sql",
    "sink": {
        "format": "delta", "path": "tables/out", "schema": "out.ddl", "mode": "append", "time_column": "at",
        "publish": "audited", "ordered": True, "partition_by": ["country"],
    },
    "state": {"provider": "rocksdb", "partitions": 2},
    "drain": {"max_batches": 10, "max_duration": "1 hour", "stuck_after": "30 minutes"},
    "cluster": "local",
    "airflow": {"pool": "other", "retries": 1, "retry_delay": "3 minutes", "priority_weight": 2},
    "conf": {"spark.sql.streaming.minBatchesToRetain": 100},
    "retention": {"quarantine": "10 days"},
}  # fmt: skip
QUALITY: dict[str, Any] = {
    "rules": [{"name": "positive", "source": "events", "check": "amount > 0", "on_fail": "quarantine"}],
    "expectations": [
        {"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "id"}, "severity": "warn"}
    ],
    "queries": [{"name": "none", "unexpected": "SELECT * FROM slice WHERE id IS NULL", "severity": "fail"}],
    "history": [{"measure": "volume", "ratio": [0.5, 2.0], "runs": 5, "severity": "warn", "name": "rows"}],
}  # fmt: skip
FILES = {
    "events.ddl": "id BIGINT, at TIMESTAMP, amount DOUBLE, country STRING",
    "prices.ddl": "id BIGINT, price DOUBLE",
    "out.ddl": "id BIGINT, at TIMESTAMP, amount DOUBLE, country STRING",
    "transform.sql": "SELECT id, at, amount, country FROM events",
}
DOCUMENTS: Mapping[str, dict[str, Any]] = {
    "include/project.yaml": PROJECT,
    "include/pipelines/orders/pipeline.yaml": PIPELINE,
    "include/pipelines/orders/quality.yaml": QUALITY,
}
BAD: Mapping[str, Any] = {
    "a mapping": {"unexpected": 1},
    "a list of lists": [["unexpected"]],
    "a negative number": -1,
    "a fraction": 0.123,
    "nothing": None,
    "another case": "NoSuchValue",
    "control characters": "a\x07b",
    "out of the folder": "../../etc/passwd",
    "10,000 characters": "x" * 10_000,
    "a variable": "${",
    "code": "reflect('java.lang.System', 'exit', 1)",
}


OF_THE_VALUE = {"spec.wrong-type", "spec.wrong-value", "spec.unknown-key", "spec.wrong-path"}
"""Ids that blame the value that was written; others may name the key that it contradicts."""


@pytest.fixture(autouse=True)
def _password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BAD_INPUT_PASSWORD", "x")


def keys_of(value: Any, path: KeyPath = ()) -> Iterator[KeyPath]:
    """Every key path of a document, the containers among them."""
    for key, below in value.items() if isinstance(value, dict) else enumerate(value):
        yield (*path, key)
        if isinstance(below, dict | list):
            yield from keys_of(below, (*path, key))


def with_value(document: dict[str, Any], path: KeyPath, value: Any) -> dict[str, Any]:
    changed = copy.deepcopy(document)
    at: Any = changed
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return changed


def write(root: Path, changed: Mapping[str, dict[str, Any]]) -> None:
    folder = root / "include/pipelines/orders"
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in FILES.items():
        (folder / name).write_text(text)
    for name, document in {**DOCUMENTS, **changed}.items():
        (root / name).write_text(yaml.safe_dump(document, sort_keys=False, width=100_000))


def found(root: Path) -> DrawdownError | None:
    """What validate says. Every other exception would be a stack trace or `cli.unexpected` on the screen."""
    try:
        [error] = check(load_project(root), []).values()
    except SpecError as refused:
        return refused
    return error


def test_the_documents_are_valid(tmp_path: Path) -> None:
    write(tmp_path, {})
    assert found(tmp_path) is None


@pytest.mark.parametrize("file", DOCUMENTS)
def test_every_bad_value_of_every_key_is_refused_at_its_line_or_is_a_good_one(
    tmp_path: Path, file: str
) -> None:
    refused, known = 0, error_entries()
    for path in keys_of(DOCUMENTS[file]):
        for kind, value in BAD.items():
            changed = with_value(DOCUMENTS[file], path, value)
            write(tmp_path, {file: changed})
            error = found(tmp_path)
            if error is None:
                continue
            refused += 1
            case = f"{'.'.join(map(str, path))}: {kind}: {error}"
            assert error.id in known, case
            assert error.exit_code == 2, case
            assert error.do, case
            assert not re.search(r"_dd_|Traceback|pydantic|<class ", str(error)), case
            named = re.match(r"(include/[^:]+):([0-9]+)$", error.where)
            if named and named[1] == file:
                lines = parse((tmp_path / file).read_text(), file).lines
                of_key = {
                    line for at, line in lines.items() if path[: len(at)] == at or at[: len(path)] == path
                }
                blamed = of_key if error.id in OF_THE_VALUE else set(lines.values())
                assert int(named[2]) in blamed, case
            else:
                assert error.where.startswith("include/"), case
    assert refused > 250, refused
