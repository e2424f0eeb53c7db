"""Nothing a user can write into a spec leaves its folder, blows up, or ends in anything but a SpecError."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drawdown.errors import SpecError
from drawdown.spec import Pipeline
from tests.support.spec_folders import PIPELINE, SpecFolders

HOSTILE = [
    "/etc/passwd", "../x", "a/../../x", "a/..", "..", ".", "./a", "a/./b", "~/x", "~root",
    "file:///etc/passwd",
    "s3://bucket/x", "jdbc:x", "C:\\x", "a\\..\\x", "a//b", "a/", " a", "a ", "${HOME}/x", "$HOME",
    "a%2f..%2fb",
    "{a,..}/x", "{..,a}/x", "a/{b,../../x}", "a\x00b", "a\nb", "\u202e/../x", "a/ .. /b",
]  # fmt: skip
BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)


def quoted(path: str) -> str:
    return '"' + "".join(f"\\u{ord(char):04x}" for char in path) + '"'


@pytest.mark.parametrize("path", HOSTILE)
@pytest.mark.parametrize("key", ["landing/departures", "tables/departures_hourly", "schemas/hourly.ddl"])
def test_no_path_leaves_its_root(tmp_path: Path, key: str, path: str) -> None:
    error = SpecFolders(tmp_path).refused(key, quoted(path))
    # A schema with a space in it names no file: it is DDL, here without the columns that the sink needs.
    is_ddl = key.startswith("schemas/") and any(char.isspace() for char in path)
    assert error.id == ("spec.unknown-column" if is_ddl else "spec.wrong-path"), str(error)


@pytest.mark.parametrize("path", ["_drawdown/x", "quarantine/x", "quarantine", "tables/*"])
def test_a_sink_keeps_off_what_is_drawdowns(tmp_path: Path, path: str) -> None:
    assert SpecFolders(tmp_path).refused("tables/departures_hourly", f"'{path}'").id == "spec.wrong-path"


@pytest.mark.parametrize("name", ["schemas/hourly.ddl", "transform.sql", "quality.yaml", "pipeline.yaml"])
def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path, name: str) -> None:
    folders = SpecFolders(tmp_path / "project")
    folder = folders.add(quality="rules: []\n")
    secret = tmp_path / "secret"
    secret.write_text("rules: [s3cret]")
    (folder / name).unlink()
    (folder / name).symlink_to(secret)
    with pytest.raises(SpecError) as caught:
        folders.load()
    assert caught.value.id == "spec.path-leaves-folder"
    assert "s3cret" not in str(caught.value)


def test_a_pipeline_folder_is_not_a_link_out_of_the_project(tmp_path: Path) -> None:
    folders, other = SpecFolders(tmp_path / "project"), SpecFolders(tmp_path / "other")
    folders.root.joinpath("include", "pipelines", "hourly").symlink_to(other.add())
    with pytest.raises(SpecError) as caught:
        folders.load()
    assert caught.value.id == "spec.path-leaves-folder"


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    folders = SpecFolders(tmp_path)
    folder = folders.add()
    (folder / "transform.sql").unlink()
    os.mkfifo(folder / "transform.sql")
    with pytest.raises(SpecError) as caught:
        folders.load()
    assert caught.value.id == "spec.file-missing"


@pytest.mark.parametrize(
    "text",
    [BOMB, "a: " + "[" * 100_000, "{" * 100_000, "a: " + "9" * 100_000, "x" * 300_000, "- " * 50_000,
    "? " * 50_000,
     "!!python/object/apply:os.system [id]", "a: !!python/name:os.system", "%TAG ! x\n---\n!a b: c",
     "\ufeff\ufeff"],
    ids=range(11),
)  # fmt: skip
def test_bombs_are_refused(tmp_path: Path, text: str) -> None:
    folders = SpecFolders(tmp_path)
    folders.add(pipeline=text)
    with pytest.raises(SpecError):
        folders.load()


@pytest.mark.parametrize(
    "option",
    ["kafka.sasl.jaas.config", "kafka.sasl.client.callback.handler.class", "kafka.interceptor.classes",
     "kafka.key.deserializer", "kafka.ssl.truststore.location", "kafka.bootstrap.servers", "kafka.group.id",
     "kafka.metric.reporters", "kafka.client.dns.lookup", "KAFKA.SASL.JAAS.CONFIG", "kafka.config.providers"],
)  # fmt: skip
def test_kafka_options_that_log_in_or_load_classes_are_refused(tmp_path: Path, option: str) -> None:
    folders = SpecFolders(tmp_path)
    folders.add(
        pipeline="sources:\n  a:\n    format: kafka\n    value: string\n"
        f"    options: {{subscribe: t, {option}: com.example.Evil}}\n"
        "sink: {format: parquet, path: tables/a}\n"
    )
    with pytest.raises(SpecError) as caught:
        folders.load()
    assert (caught.value.id, caught.value.where.rsplit(":")[-1]) == ("spec.unknown-option", "5")


def load(content: bytes, name: str = "pipeline.yaml") -> Pipeline | SpecError:
    with TemporaryDirectory() as root:
        folders = SpecFolders(Path(root).resolve())
        folder = folders.add()
        (folder / name).write_bytes(content)
        try:
            return folders.load()
        except SpecError as error:
            return error


def is_whole(outcome: Pipeline | SpecError) -> bool:
    """A pipeline, or an error that says what and where."""
    if isinstance(outcome, Pipeline):
        return True
    return bool(outcome.what) and outcome.where.startswith("include/pipelines/hourly/")


@settings(max_examples=300, deadline=None)
@given(
    st.one_of(
        st.binary(max_size=300), st.text(max_size=300).map(lambda text: text.encode("utf-8", "replace"))
    )
)
def test_any_bytes_give_a_pipeline_or_a_spec_error(content: bytes) -> None:
    outcome = load(content)
    assert isinstance(outcome, SpecError)
    assert is_whole(outcome)


@settings(max_examples=300, deadline=None)
@given(
    st.integers(0, len(PIPELINE)),
    st.integers(0, 40),
    st.one_of(
        st.text(max_size=12),
        st.sampled_from(["[]", "{}", "null", "-1", ".nan", "&a", "*a", "!x", "- ", ": "]),
    ),
    st.sampled_from(["pipeline.yaml", "quality.yaml"]),
)
def test_a_damaged_spec_gives_a_pipeline_or_a_spec_error(
    start: int, length: int, text: str, name: str
) -> None:
    damaged = PIPELINE[:start] + text + PIPELINE[start + length :]
    assert is_whole(load(damaged.encode("utf-8", "replace"), name))
