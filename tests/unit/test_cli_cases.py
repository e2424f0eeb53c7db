"""case.yaml is checked before anything runs, and its files go where their source reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from drawdown.errors import SpecError
from drawdown.spec import Source
from drawdown.testing.cases.case import load_cases
from drawdown.testing.cases.placing import place
from tests.support.spec_folders import SpecFolders


def case(folders: SpecFolders, text: str, *files: str) -> Path:
    folder = folders.add() / "tests" / "first"
    folder.mkdir(parents=True)
    (folder / "case.yaml").write_text(text)
    for file in files:
        (folder / file).write_text("origin\n")
    return folder


def refused(folders: SpecFolders) -> SpecError:
    with pytest.raises(SpecError) as caught:
        load_cases(folders.load())
    return caught.value


def test_a_case_with_all_its_files_is_loaded(tmp_path: Path) -> None:
    folders = SpecFolders(tmp_path)
    text = "static: {airports: [a.csv]}\nwaves: [{departures: [w.csv]}, {}]\n"
    case(
        folders, text, "a.csv", "w.csv", "wave1.expected.csv", "wave2.expected.jsonl", "wave1.quarantine.csv"
    )
    [found] = load_cases(folders.load())
    assert found.name == "first"
    assert found.expected(2, "expected") == found.folder / "wave2.expected.jsonl"
    assert found.expected_quarantine(2) == found.folder / "wave1.quarantine.csv", "nothing new was rejected"


def test_an_unknown_key_and_a_wrong_source_name_the_nearest(tmp_path: Path) -> None:
    folders = SpecFolders(tmp_path)
    folder = case(folders, "wavs: []\n")
    assert "did you mean 'waves'" in refused(folders).what
    (folder / "case.yaml").write_text("waves:\n  - departure: []\n")
    error = refused(folders)
    assert error.id == "test.unknown-source"
    assert "did you mean 'departures'" in error.what
    assert error.where == "include/pipelines/hourly/tests/first/case.yaml:2"


def test_a_static_source_does_not_arrive_in_a_wave(tmp_path: Path) -> None:
    folders = SpecFolders(tmp_path)
    case(folders, "waves: [{airports: []}]\n")
    assert refused(folders).id == "test.unknown-source"


def test_input_and_expected_files_must_be_there_and_inside(tmp_path: Path) -> None:
    folders = SpecFolders(tmp_path)
    folder = case(folders, "waves: [{departures: [w.csv]}]\n")
    assert refused(folders).id == "test.no-file"
    (folder / "w.csv").symlink_to("/etc/hostname")
    assert refused(folders).id == "test.no-file", "a link out of the folder"
    (folder / "w.csv").unlink()
    (folder / "w.csv").write_text("")
    assert refused(folders).id == "test.nothing-expected"


def test_a_pipeline_without_a_case_says_so_and_a_misspelt_case_is_named(tmp_path: Path) -> None:
    folders = SpecFolders(tmp_path)
    folders.add()
    assert refused(folders).id == "test.none"
    (folders.load().folder / "tests" / "first").mkdir(parents=True)
    with pytest.raises(SpecError, match="did you mean 'first'"):
        load_cases(folders.load(), "frist")


@pytest.mark.parametrize(
    ("path", "static", "where"),
    [
        ("landing/x", False, "landing/x/w.csv"),
        ("landing/*/x", False, "landing/test/x/w.csv"),
        ("landing/day=?/*.csv", False, "landing/day=0/w.csv"),
        ("reference/one.csv", True, "reference/one.csv"),
        ("reference/one", True, "reference/one/w.csv"),
    ],
)
def test_a_file_is_put_where_its_source_finds_it(path: str, static: bool, where: str) -> None:
    assert place(source(path, static), "w.csv") == where


@pytest.mark.parametrize("path", ["landing/*.json", "landing/[ab]/x"])
def test_a_file_that_its_source_would_not_find_is_refused(path: str) -> None:
    with pytest.raises(SpecError) as caught:
        place(source(path, False), "w.csv")
    assert caught.value.id == "test.glob"


def source(path: str, static: bool) -> Source:
    return Source.model_validate({"format": "csv", "path": path, "schema": "x.ddl", "static": static})
