"""Every key of the YAML files is described, by a sentence and an example that the key accepts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest
import yaml
from pydantic import TypeAdapter

from dev.reference_pages import flow, page, path_of
from drawdown.spec.json_schema import FILES, schema_of
from drawdown.spec.key_reference import KeyPlace, KeyText, describe, file_text, places
from drawdown.spec.loader import load_pipeline, load_project
from drawdown.values.model import SpecModel

FOLDER = "include/pipelines/example"


def _described() -> list[tuple[str, KeyPlace, KeyText]]:
    found = []
    for name in FILES:
        said = file_text(name)
        found += [(name, place, said.keys[said.key(place)]) for place in places(schema_of(name))]
    return found


def _models(base: type[SpecModel] = SpecModel) -> Iterator[type[SpecModel]]:
    for model in base.__subclasses__():
        yield model
        yield from _models(model)


MODELS = {model.__name__: model for model in _models()}


def _accepted(name: str, place: KeyPlace, value: Any) -> None:
    """Raises a ValidationError when the key does not take the value."""
    fields = (MODELS[place.model] if place.model else FILES[name]).model_fields
    field = next(each for key, each in fields.items() if place.name in (key, each.alias))
    annotated: Any = Annotated[(field.annotation, *field.metadata)] if field.metadata else field.annotation
    TypeAdapter(annotated).validate_python(value)


@pytest.mark.parametrize("name", FILES)
def test_the_described_keys_are_those_of_the_models(name: str) -> None:
    in_models = list(places(schema_of(name)))
    assert in_models
    assert {file_text(name).key(place) for place in in_models} == set(file_text(name).keys)


def test_a_key_without_a_sentence_is_an_error() -> None:
    with pytest.raises(KeyError, match="colour"):
        describe("quality", {"properties": {"colour": {"type": "string"}}})


@pytest.mark.parametrize(("name", "place", "text"), _described(), ids=lambda each: getattr(each, "path", ""))
def test_a_key_accepts_its_example(name: str, place: KeyPlace, text: KeyText) -> None:
    if text.example is None:
        assert place.name == "kind", "only `kind:` has its examples beside it"
    else:
        _accepted(name, place, text.example)
        assert yaml.safe_load(f"{place.name}: {flow(text.example)}") == {place.name: text.example}


@pytest.mark.parametrize("name", FILES)
def test_what_is_said_are_sentences(name: str) -> None:
    said = file_text(name)
    for key, text in [("", said.opening), *((key, each.text) for key, each in said.keys.items())]:
        assert re.match(r"[A-Z`]", text), f"{key}: begins with a small letter"
        assert text.endswith("."), f"{key}: has no full stop"
        assert not re.search(r"\b(of it|anew|nobody|what is there)\b", text), f"{key}: not plain English"


@pytest.mark.parametrize("name", FILES)
def test_editors_show_the_sentences(name: str) -> None:
    for place in places(schema_of(name)):
        text = file_text(name).keys[file_text(name).key(place)]
        assert place.node["description"] == text.text
        assert place.node.get("examples", [None]) == [text.example]


@pytest.mark.parametrize("name", FILES)
def test_the_pages_are_current(name: str) -> None:
    assert path_of(name).read_text(encoding="utf-8") == page(name), "run: python -m dev.reference_pages"


def test_the_examples_of_the_pages_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / FOLDER
    (folder / "schemas").mkdir(parents=True)
    (tmp_path / "include" / "project.yaml").write_text(file_text("project").example)
    (folder / "pipeline.yaml").write_text(file_text("pipeline").example)
    (folder / "quality.yaml").write_text(file_text("quality").example)
    (folder / "transform.sql").write_text("SELECT * FROM flights")
    (folder / "schemas" / "flights.ddl").write_text("departed_at TIMESTAMP")
    (folder / "schemas" / "departures.ddl").write_text("hour TIMESTAMP")
    project = load_project(tmp_path)
    assert "warehouse" in project.databases
    pipeline = load_pipeline(project, "example")
    assert pipeline.replay
    assert pipeline.quality.audits
    assert {line.count("\n") for line in (file_text(name).example for name in FILES)} <= set(range(1, 21))


def test_options_of_kinds_are_on_the_page() -> None:
    text = path_of("pipeline").read_text(encoding="utf-8")
    for option in (
        "maxFilesPerTrigger",
        "startingOffsets",
        "versionAsOf",
        "kafka.linger.ms",
        "rocksdb.compression",
    ):
        assert f"`{option}`" in text
