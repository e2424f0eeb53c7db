"""Each key of pipeline.yaml and quality.yaml, changed: it takes effect when keys/*.toml says so."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest
import yaml

from drawdown.plan.fingerprint import spec_fingerprint
from drawdown.plan.spec_changes import changes
from drawdown.spec import Pipeline
from drawdown.spec.key_reference import EFFECTS, file_text
from drawdown.spec.pipeline import Beside
from drawdown.spec.quality import Quality

pytestmark = pytest.mark.capability("RIGHT-03")

BASES = {
    "files": """
        sources:
          in:
            format: csv
            path: landing/in
            schema: "id INT, at TIMESTAMP"
            watermark: {column: at, delay: 1 hour}
          fixed: {format: json, path: dimensions, schema: "id INT", static: true}
        sink:
          format: delta
          path: tables/out
          schema: "id INT, at TIMESTAMP"
          mode: update
          keys: [id, at]
          time_column: at
        replay: {interval: 1 day}
        """,
    "kafka": """
        sources:
          in: {format: kafka, value: json, schema: "id INT, at TIMESTAMP", options: {subscribe: t}}
        sink: {format: kafka, topic: out}
        """,
    "two": """
        sources:
          in:
            format: json
            path: landing/in
            schema: "at TIMESTAMP"
            watermark: {column: at, delay: 1 hour}
            order: name
          also: {format: json, path: landing/b, schema: "t TIMESTAMP", watermark: {column: t, delay: 1 hour}}
        sink: {format: delta, path: tables/out, schema: "at TIMESTAMP"}
        """,
    "append": """
        sources:
          in: {format: json, path: landing/in, schema: "id INT"}
        sink: {format: delta, path: tables/out, schema: "id INT"}
        """,
    "code": """
        sources:
          in: {format: json, path: landing/in, schema: "id INT"}
        sink: {format: foreach_batch, function: sink.py}
        """,
    "postgres": """
        sources:
          in: {format: json, path: landing/in, schema: "id INT"}
        sink: {format: postgres, table: public.a, schema: "id INT"}
        """,
}
CHANGES: dict[str, tuple[str, str, Any]] = {
    "description": ("files", "description", "other"),
    "first_name": ("files", "first_name", "other"),
    "schedule": ("files", "schedule", "@hourly"),
    "freshness": ("files", "freshness", "1 day"),
    "partitions": ("files", "partitions", "day"),
    "group": ("files", "group", "g"),
    "owner": ("files", "owner", "me"),
    "tags": ("files", "tags", ["a"]),
    "cluster": ("files", "cluster", "other"),
    "samples": ("files", "samples", "all"),
    "approvers": ("files", "approvers", ["ada"]),
    "watermark_policy": ("two", "watermark_policy", "max"),
    "conf": ("files", "conf", {"spark.sql.streaming.fileSink.log.compactInterval": 20}),
    "sources.NAME.format": ("append", "sources.in.format", "csv"),
    "sources.NAME.path": ("files", "sources.in.path", "landing/other"),
    "sources.NAME.storage": ("files", "sources.in.storage", "s"),
    "sources.NAME.schema": ("files", "sources.in.schema", "id INT, at TIMESTAMP, v INT"),
    "sources.NAME.options": ("files", "sources.in.options", {"header": True}),
    "sources.NAME.watermark.column": ("files", "sources.in.watermark.column", "id"),
    "sources.NAME.watermark.delay": ("files", "sources.in.watermark.delay", "2 hours"),
    "sources.NAME.watermark.max_future": ("files", "sources.in.watermark.max_future", "1 day"),
    "sources.NAME.watermark.late": ("files", "sources.in.watermark.late", "keep"),
    "sources.NAME.static": ("files", "sources.fixed.static", False),
    "sources.NAME.malformed": ("files", "sources.in.malformed", "drop"),
    "sources.NAME.settle": ("files", "sources.in.settle", "1 minute"),
    "sources.NAME.names_late": ("two", "sources.in.names_late", "2 hours"),
    "sources.NAME.policy.rewritten": ("files", "sources.in.policy.rewritten", "warn"),
    "sources.NAME.policy.too_old": ("files", "sources.in.policy.too_old", "fail"),
    "sources.NAME.policy.future_mtime": ("files", "sources.in.policy.future_mtime", "warn"),
    "sources.NAME.policy.drift": ("append", "sources.in.policy.drift", "quarantine"),
    "sources.NAME.policy.oversized": ("files", "sources.in.policy.oversized", "fail"),
    "sources.NAME.limits.record": ("files", "sources.in.limits.record", "1m"),
    "sources.NAME.commit_group": ("kafka", "sources.in.commit_group", "g"),
    "sources.NAME.value": ("kafka", "sources.in.value", "csv"),
    "sink.format": ("append", "sink.format", "parquet"),
    "sink.path": ("files", "sink.path", "tables/other"),
    "sink.table": ("postgres", "sink.table", "public.b"),
    "sink.topic": ("kafka", "sink.topic", "other"),
    "sink.function": ("code", "sink.function", "other.py"),
    "sink.mode": ("append", "sink.mode", "complete"),
    "sink.keys": ("files", "sink.keys", ["id", "at", "v"]),
    "sink.time_column": ("append", "sink.time_column", "id"),
    "sink.publish": ("append", "sink.publish", "direct"),
    "sink.ordered": ("append", "sink.ordered", False),
    "sink.delivery": ("kafka", "sink.delivery", "at_least_once"),
    "sink.partition_by": ("append", "sink.partition_by", ["id"]),
    "sink.options": ("append", "sink.options", {"delta.enableChangeDataFeed": True}),
    "state.provider": ("files", "state.provider", "hdfs"),
    "state.partitions": ("files", "state.partitions", 3),
    "drain.max_batches": ("files", "drain.max_batches", 3),
    "drain.max_duration": ("files", "drain.max_duration", "1 hour"),
    "drain.stuck_after": ("files", "drain.stuck_after", "2 hours"),
    "replay.interval": ("files", "replay.interval", "1 hour"),
    "replay.lookback": ("files", "replay.lookback", "1 hour"),
    "replay.lookahead": ("files", "replay.lookahead", "1 hour"),
    "retention.quarantine": ("files", "retention.quarantine", "30 days"),
    "airflow.retries": ("files", "airflow.retries", 1),
    "airflow.pool": ("files", "airflow.pool", "p"),
}
# What another test shows, or what only an analysed query or other keys can show.
ELSEWHERE = {
    "transform": "below",
    "sink.schema": "tests/engine/test_plan_columns.py",
    "sink.database": "tests/engine/test_postgres_checks.py",
    "sink.broker": "tests/engine/test_kafka_target.py",
    "sources.NAME.broker": "tests/engine/test_preflight_kafka.py",
    "sources.NAME.identity": "one value is accepted",
    "sources.NAME.infer_schema": "tests/engine/test_drain_formats.py",
    "sources.NAME.order": "tests/engine/test_rising_names.py",
    "sources.NAME.arrivals.": "tests/engine/test_notified_files.py",
    "sources.NAME.reader": "tests/conformance",
    "sources.NAME.table": "tests/engine/test_shared_modules.py",
    "sources.NAME.limits.": "tests/engine/test_files_beyond_limits.py",
    "airflow.": "tests/airflow",
    "alerts.": "tests/unit",
    "retention.": "tests/engine/test_upkeep.py",
}


def pipeline(text: str, at: str = "", value: Any = None, **beside: Any) -> Pipeline:
    spec = yaml.safe_load(text)
    if at:
        *above, last = at.split(".")
        place = spec
        for name in above:
            place = place.setdefault(name, {})
        place[last] = copy.deepcopy(value)
    made = Pipeline.model_validate(spec)
    made._beside = replace(Beside(), **beside)
    for source in made.sources.values():
        source._schema_ddl = source.schema_text
    return made


def effects(name: str) -> dict[str, str]:
    found = {path.split(" (")[0]: str(text.changed) for path, text in file_text(name).keys.items()}
    assert set(found.values()) <= set(EFFECTS)
    return found


def seen(before: Pipeline, after: Pipeline) -> dict[str, bool]:
    found = changes(spec_fingerprint(before), spec_fingerprint(after))
    return {
        "fixed": any(not change.allowed for change in found),
        "state": any(change.allowed for change in found) and all(change.allowed for change in found),
        "batch": before.judging != after.judging,
        "slice": before.sink.treatment != after.sink.treatment,
    }


@pytest.mark.parametrize("key", CHANGES)
def test_a_change_of_a_key_takes_effect_when_its_line_says(key: str) -> None:
    base, at, value = CHANGES[key]
    before, after = pipeline(BASES[base]), pipeline(BASES[base], at, value)
    assert before.model_dump() != after.model_dump(), "nothing was changed"
    effect, found = effects("pipeline")[key], seen(before, after)
    assert found.get(effect, True), found
    if effect in ("run", "state", "dag", "command", "new"):
        assert not {name for name in ("fixed", "batch", "slice") if found[name]}


def test_a_change_of_the_transform_keeps_the_state() -> None:
    before, after = (pipeline(BASES["files"], transform_text=text) for text in ("SELECT 1", "SELECT 2"))
    assert effects("pipeline")["transform"] == "state"
    assert seen(before, after)["state"]


def test_rules_wait_for_a_begun_batch_and_expectations_do_not() -> None:
    rules = Quality.model_validate({"rules": [{"name": "a", "check": "id > 0", "on_fail": "warn"}]})
    expects = Quality.model_validate({"expectations": [{"type": "expect_table_row_count_to_equal"}]})
    before = pipeline(BASES["append"])
    assert seen(before, pipeline(BASES["append"], quality=rules))["batch"]
    assert not seen(before, pipeline(BASES["append"], quality=expects))["batch"]
    assert {effect for key, effect in effects("quality").items() if key.startswith("rules")} == {"batch"}
    assert {effect for key, effect in effects("quality").items() if not key.startswith("rules")} == {"audit"}


def test_every_key_is_changed_here_or_elsewhere() -> None:
    for key, effect in effects("pipeline").items():
        if effect != "keys":
            assert key in CHANGES or any(
                key == e or (e.endswith(".") and key.startswith(e)) for e in ELSEWHERE
            ), key
