"""Arguments of expectations are taken from a list: none of them fetches, runs or looks up anything."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from drawdown.errors import SpecError
from drawdown.quality import gx_import
from drawdown.quality.common_expectations import EVERYDAY
from drawdown.quality.expectation_arguments import ARGUMENTS
from drawdown.quality.expectations import NOT_ON_SPARK, OUTSIDE_THE_SLICE, RESERVED, refuse_unknown
from drawdown.quality.json_schemas import why_refused
from tests.support.quality import pipeline_with
from tests.support.refusals import refused
from tests.support.sandbox import Sandbox

pytestmark = pytest.mark.capability("SAFE-02")

SPEC = """
sources:
  events: {format: json, path: landing/events, schema: "id INT, body STRING"}
transform: transform.sql
sink: {format: delta, path: tables/out, schema: "id INT, body STRING", publish: audited}
state: {partitions: 2}
"""
SHAPE = {"type": "object", "properties": {"a": {"$ref": "#/$defs/count"}}, "$defs": {"count": {"minimum": 0}}}
NOT_NULL = "expect_column_values_to_not_be_null"
SET = "expect_column_values_to_be_in_set"
SCHEMA = "expect_column_values_to_match_json_schema"


class Fetched(ThreadingHTTPServer):
    """Answers every request with a JSON schema, and keeps its path."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.paths: list[str] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Answers(BaseHTTPRequestHandler):
    server: Fetched

    def do_GET(self) -> None:
        self.server.paths.append(self.path)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def fetched() -> Iterator[Fetched]:
    with Fetched() as server:
        yield server
        server.shutdown()


def quality(type: str, **kwargs: Any) -> str:
    return json.dumps({"expectations": [{"type": type, "kwargs": {"column": "body", **kwargs}}]})


def refusal(type: str, **kwargs: Any) -> SpecError:
    with pytest.raises(SpecError) as caught:
        refuse_unknown(pipeline_with(quality(type, **kwargs)))
    return caught.value


def test_every_type_and_argument_of_great_expectations_has_been_looked_at() -> None:
    gx_import.load()
    from great_expectations.expectations import registry

    types = {*registry.list_registered_expectation_implementations()}
    no_expectation = {"unexpected_rows_expectation"}
    assert types - OUTSIDE_THE_SLICE - NOT_ON_SPARK - no_expectation == ARGUMENTS.keys()
    left_out = set()
    for name, arguments in ARGUMENTS.items():
        fields = set(registry.get_expectation_impl(name).__fields__) - RESERVED
        assert {*arguments} <= fields
        left_out |= fields - {*arguments}
    assert left_out == {"library_metadata"}
    assert all({*needed, *allowed} <= {*ARGUMENTS[name]} for name, (needed, allowed) in EVERYDAY.items())


@pytest.mark.parametrize(
    ("type", "kwargs"),
    [
        (SET, {"value_set": {"$PARAMETER": "urn:great_expectations:stores:my_store:x"}}),
        (SET, {"value_set": [{"$PARAMETER": "now() - 1"}]}),
        (SET, {"value_set": ["x"], "mostly": {"$PARAMETER": "x"}}),
        ("expect_column_max_to_be_between", {"max_value": {"$PARAMETER": "x"}}),
        (NOT_NULL, {"row_condition": {"type": "pass_through", "pass_through_filter": "id > 1"}}),
        (NOT_NULL, {"row_condition": {"type": "and", "conditions": [
            {"type": "pass_through", "pass_through_filter": "id > 1"}]}}),
        (NOT_NULL, {"row_condition": "id > 1", "condition_parser": "pandas"}),
        (NOT_NULL, {"row_condition": {"type": "nullity", "column": "`id`) OR (true", "is_null": True}}),
        ("expect_column_values_to_be_of_type", {"type_": "os.system"}),
        ("expect_column_values_to_be_in_type_list", {"type_list": ["IntegerType", "__class__.x"]}),
        ("expect_multicolumn_sum_to_equal", {"column_list": ["id", "id + current_user"], "sum_total": 1}),
        ("expect_table_columns_to_match_set", {"column_set": {"$PARAMETER": "x"}}),
        ("expect_column_quantile_values_to_be_between", {"quantile_ranges": {"$PARAMETER": "x"}}),
        ("expect_column_kl_divergence_to_be_less_than", {"partition_object": {"values": {"a": 1}}}),
        (SCHEMA, {"json_schema": "http://localhost/schema"}),
        (SET, {"value_set": ["x"] * 10_001}),
    ],
)  # fmt: skip
def test_a_value_of_another_shape_is_refused(type: str, kwargs: dict[str, Any]) -> None:
    if "table" in type or "multicolumn" in type:
        kwargs = {**kwargs, "column": None}
        with pytest.raises(SpecError, match=r"quality\.(bad|unknown)-argument"):
            refuse_unknown(pipeline_with(quality(type, **kwargs)))
        return
    assert refusal(type, **kwargs).id == "quality.bad-argument"


@pytest.mark.parametrize(
    ("argument", "nearest"),
    [
        ("library_metadata", "known here"),
        ("value_sets", "value_set"),
        ("unexpected_rows_query", "known here"),
    ],
)
def test_an_argument_that_is_not_on_the_list_is_refused(argument: str, nearest: str) -> None:
    error = refusal(SET, value_set=["x"], **{argument: {"a": 1}})
    assert error.id == "quality.unknown-argument"
    assert nearest in error.do


@pytest.mark.parametrize(
    ("type", "kwargs"),
    [
        (NOT_NULL, {"row_condition": {"type": "or", "conditions": [
            {"type": "comparison", "column": {"name": "id"}, "operator": "IN", "parameter": [1, 2]},
            {"type": "nullity", "column": {"name": "id"}, "is_null": True}]}}),
        (NOT_NULL, {"row_condition": 'col("id") > 1', "condition_parser": "great_expectations"}),
        (SCHEMA, {"json_schema": SHAPE}),
        ("expect_column_quantile_values_to_be_between",
         {"quantile_ranges": {"quantiles": [0.5], "value_ranges": [[1, None]]}}),
        ("expect_column_values_to_be_in_type_list", {"type_list": ["IntegerType", "LongType"]}),
    ],
)  # fmt: skip
def test_what_is_harmless_stays(type: str, kwargs: dict[str, Any]) -> None:
    from drawdown.quality.expectations import validate_expectations

    validate_expectations(pipeline_with(quality(type, **kwargs)))


def deep(levels: int) -> dict[str, Any]:
    return {"properties": {"a": deep(levels - 1)}} if levels else {}


def doubling(levels: int) -> dict[str, Any]:
    """A schema of which each level holds a value twice against the level below."""
    named = {f"l{n}": {"allOf": [{"$ref": f"#/$defs/l{n - 1}"}] * 2} for n in range(1, levels)}
    return {"$defs": {"l0": {}, **named}, "$ref": f"#/$defs/l{levels - 1}"}


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "http://localhost/x"},
        {"$ref": "file:///etc/passwd"},
        {"$ref": "other.json#/a"},
        {"$ref": "//localhost/x"},
        {"$id": "http://localhost/", "$ref": "#/$defs/a", "$defs": {"a": {}}},
        {"id": "http://localhost/", "properties": {"a": {"$ref": "#"}}},
        {"properties": {"a": {"$id": "http://localhost/", "$ref": "#/b"}}},
        {"$dynamicRef": "http://localhost/x"},
        {"$recursiveRef": "http://localhost/x"},
        {"$schema": "http://localhost/schema"},
        {"$schema": "http://json-schema.org/draft-03/schema#", "extends": {"$ref": "http://localhost/"}},
        {"$vocabulary": {"http://localhost/": True}},
        {"type": [{"$ref": "http://localhost/x"}]},
        # A value under `const` is no schema until a reference says so.
        {"const": {"a": {"$ref": "http://localhost/x"}}, "properties": {"b": {"$ref": "#/const/a"}}},
        {"enum": [{"$ref": "http://localhost/x"}], "not": {"$ref": "#/enum/0"}},
        {"properties": {"const": {"$ref": "http://localhost/x"}}},
        {"items": [{"not": {"anyOf": [{"then": {"$ref": "http://localhost/x"}}]}}]},
        {"dependencies": {"a": {"$ref": "http://localhost/x"}}},
        {"unknown": {"$ref": "http://localhost/x"}},
        {"$ref": "#/$defs/missing"},
        {"$ref": "#"},
        {"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/b"}]}, "b": {"not": {"$ref": "#/$defs/a"}}}},
        doubling(40),
        deep(60),
        {"anyOf": [{}] * 1_001},
        {"properties": "http://localhost/x"},
        [],
        "http://localhost/x",
    ],
)  # fmt: skip
def test_a_json_schema_that_is_not_whole_in_itself_is_refused(schema: Any) -> None:
    assert why_refused(schema)


@pytest.mark.parametrize(
    "schema",
    [
        SHAPE,
        {},
        {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": ["object", "null"]},
        {"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"a/b~c": {"minLength": 1}},
         "properties": {"a": {"$ref": "#/definitions/a~1b~0c"}, "$ref": {"minLength": 1}, "id": {}}},
        {"properties": {"children": {"type": "array", "items": {"$ref": "#"}}}},
        {"const": {"$ref": "http://localhost/x"}, "enum": [{"id": "x"}], "default": {"$id": "x"}},
        {"dependencies": {"a": ["b"], "c": {"required": ["d"]}}, "items": [{}], "additionalItems": False},
        doubling(8),
    ],
)  # fmt: skip
def test_a_json_schema_may_refer_to_itself(schema: Any) -> None:
    assert why_refused(schema) is None


def test_nothing_is_fetched_for_a_json_schema(sandbox: Sandbox, fetched: Fetched, tmp_path: Path) -> None:
    """jsonschema would: the first lines show that the server and the file are what it reaches."""
    import jsonschema

    with pytest.warns(DeprecationWarning, match="remote"):
        jsonschema.validate({}, {"$ref": f"{fetched.url}/control"})
    assert fetched.paths == ["/control"]
    secret = tmp_path / "secret.json"
    secret.write_text('{"const": "a secret"}')

    sandbox.land_json("landing/events/1.json", [{"id": 1, "body": '{"a": 1}'}])
    for target in (f"{fetched.url}/schema", secret.as_uri()):
        hostile = quality(SCHEMA, json_schema={"properties": {"a": {"$ref": target}}})
        sandbox.pipeline("judged", SPEC, transform_sql="SELECT * FROM events", quality_yaml=hostile)
        error = refused(sandbox, "judged", "quality.bad-argument", SpecError)
        assert "points out of itself at #/properties/a" in error.what
    sandbox.pipeline(
        "judged",
        SPEC,
        transform_sql="SELECT * FROM events",
        quality_yaml=quality(SCHEMA, json_schema=SHAPE),
    )
    assert sandbox.run("judged").verdict == "pass"
    assert fetched.paths == ["/control"]


def test_arguments_are_refused_without_great_expectations() -> None:
    code = f"""
import sys
from drawdown.errors import SpecError
from drawdown.quality.expectations import refuse_unknown
from tests.support.quality import pipeline_with
try:
    refuse_unknown(pipeline_with({quality(SCHEMA, json_schema={"$ref": "http://localhost/"})!r}))
except SpecError as error:
    print(error.id, "great_expectations" in sys.modules, "pyspark" in sys.modules)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "quality.bad-argument False False\n"
