"""Of pipelines that collide, the newcomer is refused, and the one that ran goes on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from drawdown.cli.commands.validate import check
from drawdown.errors import SpecError
from drawdown.spec import iter_pipelines
from drawdown.spec.loader import refusal_beside_others
from tests.support.newcomers import note_run, pipeline, refused
from tests.support.spec_folders import SpecFolders

PROJECT = """
storage_root: storage
metastore: sqlite:///metastore.db
brokers: {default: {bootstrap_servers: "localhost:1"}, alias: {bootstrap_servers: "localhost:1"}}
clusters: {local: {}, big: {driver_memory: 2g}}
"""
Specs = Mapping[str, Mapping[str, str]]
FIN = {"more": 'group: fin\nschedule: "@hourly"'}
REPLAYED = {"more": "replay: {interval: 1 day}", "keys": "time_column: at", "options": "{}"}
DELETES = {"path": "landing/a", "options": "{cleanSource: delete}"}
ARCHIVES = {"path": "landing/a", "options": "{cleanSource: archive, sourceArchiveDir: archive/a}"}


@dataclass(frozen=True)
class Case:
    """Pipelines that ran, the one that comes, and the id of its error."""

    id: str
    ran: Specs
    new: Specs
    alone: frozenset[str] = field(default=frozenset())
    """Who is refused when nobody has run; empty: all of them."""


CASES = {
    "a sink in a sink": Case("spec.shared-sink", {"quar": {}}, {"x": {"sink": "tables/quar/x"}}),
    "a sink around a sink": Case("spec.shared-sink", {"quar": {}}, {"a": {"sink": "tables"}}),
    "a sink that is a sink": Case("spec.shared-sink", {"quar": {}}, {"a": {"sink": "tables/quar"}}),
    "two sinks in a sink": Case(
        "spec.shared-sink", {"quar": {}}, {"a": {"sink": "tables/quar/a"}, "b": {"sink": "tables/quar/b"}}
    ),
    "a table's name": Case(
        "spec.shared-table", {"orders": {"keys": "table: orders"}}, {"a": {"keys": "table: orders"}}
    ),
    "a group's schedule": Case(
        "spec.group-schedule", {"b": FIN, "c": FIN}, {"a": {"more": 'group: fin\nschedule: "@daily"'}}
    ),
    "a group's settings": Case(
        "spec.group-airflow", {"b": FIN, "c": FIN}, {"a": {"more": FIN["more"] + "\nairflow: {retries: 0}"}}
    ),
    "a group's cluster": Case(
        "spec.group-cluster", {"b": FIN, "c": FIN}, {"a": {"more": FIN["more"] + "\ncluster: big"}}
    ),
    "a group's name": Case("spec.group-name", {"b": FIN, "c": FIN}, {"fin": {}}),
    "the name of a pipeline as a group": Case("spec.group-name", {"fin": {}}, {"a": FIN, "b": FIN}),
    "a circle in a group": Case(
        "group.cycle",
        {"b": {**FIN, "path": "landing/b"}, "c": {**FIN, "path": "tables/b"}},
        {"a": {**FIN, "path": "tables/c", "sink": "landing/b"}},
    ),
    "a stream over a table that replays change": Case(
        "spec.replayed-source",
        {"b": REPLAYED},
        {"a": {"path": "tables/b", "options": "DELTA"}},
        frozenset("b"),
    ),
    "replays of a table that is streamed": Case(
        "spec.replayed-source", {"b": {"path": "tables/c", "options": "DELTA"}}, {"c": REPLAYED}
    ),
    "the name of a replay DAG": Case(
        "spec.taken-name", {"a": REPLAYED}, {"a__replay": {}}, frozenset({"a__replay"})
    ),
    "replays that take a pipeline's name": Case(
        "spec.taken-name", {"a__replay": {}}, {"a": REPLAYED}, frozenset({"a__replay"})
    ),
    "reading what another cleans": Case(
        "spec.cleaned-source", {"b": DELETES}, {"a": {"path": "landing/*"}}, frozenset("b")
    ),
    "cleaning what another reads": Case(
        "spec.cleaned-source", {"b": {"path": "landing/a"}}, {"a": DELETES}, frozenset("a")
    ),
    "cleaning a sink": Case(
        "spec.cleaned-place", {"b": {"sink": "landing/a/b"}}, {"c": DELETES}, frozenset("c")
    ),
    "a sink where another cleans": Case(
        "spec.cleaned-place",
        {"b": DELETES},
        {"a": {"sink": "landing/a", "path": "landing/x"}},
        frozenset("b"),
    ),
    "an archive in a sink": Case(
        "spec.cleaned-place", {"archive": {"sink": "archive"}}, {"a": ARCHIVES}, frozenset("a")
    ),
    "a sink in an archive": Case(
        "spec.cleaned-place", {"b": ARCHIVES}, {"a": {"sink": "archive/a/b"}}, frozenset("b")
    ),
    "an archive where another reads": Case(
        "spec.cleaned-source", {"b": {"path": "archive/*"}}, {"a": ARCHIVES}, frozenset("a")
    ),
    "cleaning another's archive": Case(
        "spec.cleaned-source",
        {"b": {**ARCHIVES, "options": "{cleanSource: archive, sourceArchiveDir: landing/b/done}"}},
        {"c": {"path": "landing/b/*", "options": "{cleanSource: delete}"}},
        frozenset("b"),
    ),
}  # fmt: skip


@pytest.fixture
def folders(tmp_path: Path) -> SpecFolders:
    return SpecFolders(tmp_path, PROJECT)


def write(folders: SpecFolders, specs: Specs) -> None:
    for name, spec in specs.items():
        pipeline(folders, name, **spec)
        if spec.get("options") == "DELTA":
            file = folders.root / "include" / "pipelines" / name / "pipeline.yaml"
            text = file.read_text().replace("json", "delta")
            file.write_text(text.replace(', schema: "id INT, at TIMESTAMP", options: DELTA', ""))


def errors(folders: SpecFolders) -> dict[str, SpecError]:
    return {
        name: error
        for name in refused(folders.project)
        if (error := refusal_beside_others(folders.project, name))
    }


@pytest.mark.capability("SAFE-05")
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_the_newcomer_is_refused_and_the_one_that_ran_goes_on(folders: SpecFolders, case: Case) -> None:
    write(folders, case.ran)
    assert refused(folders.project) == {}
    for name in case.ran:
        note_run(folders.project, name)
    write(folders, case.new)

    assert refused(folders.project) == dict.fromkeys(case.new, case.id)
    for name, error in errors(folders).items():
        assert "ran first (since 20" in error.what
        assert f"{name} has to change" in error.what or "have to change" in error.what
        assert all(each in error.what for each in (name, *case.ran)), error.what
        assert error.do
        assert any(f"include/pipelines/{each}/pipeline.yaml" in error.where for each in case.new)
    said = check(folders.project, [])
    assert {name for name, error in said.items() if error is not None} == set(case.new), (
        "validate says the same"
    )


@pytest.mark.capability("SAFE-05")
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_when_nobody_has_run_all_are_refused_and_named(folders: SpecFolders, case: Case) -> None:
    write(folders, case.new)
    write(folders, case.ran)
    expected = case.alone or {*case.ran, *case.new}
    if case.id == "spec.replayed-source" and not case.alone:
        expected = {name for name in expected if "replay:" in {**case.ran, **case.new}[name].get("more", "")}
    assert refused(folders.project) == dict.fromkeys(expected, case.id)
    assert all("neither has run yet" in error.what for error in errors(folders).values())
    assert not (folders.root / "metastore.db").exists(), "looking creates no metastore"


@pytest.mark.capability("SAFE-05")
def test_one_that_ran_elsewhere_is_a_newcomer_where_it_moves_to(folders: SpecFolders) -> None:
    for name in ("elsewhere", "quar"):
        pipeline(folders, name)
        note_run(folders.project, name)
    pipeline(folders, "elsewhere", sink="tables/quar")
    assert refused(folders.project) == {"elsewhere": "spec.shared-sink"}


@pytest.mark.capability("SAFE-05")
def test_a_folder_that_was_taken_away_keeps_no_place_for_itself(folders: SpecFolders) -> None:
    pipeline(folders, "squat", sink="tables/payroll")
    note_run(folders.project, "squat")
    folder = folders.root / "include" / "pipelines" / "squat"
    folder.rename(folders.root / "aside")
    pipeline(folders, "payroll")
    note_run(folders.project, "payroll")
    (folders.root / "aside").rename(folder)
    assert refused(folders.project) == {"squat": "spec.shared-sink"}


@pytest.mark.capability("SAFE-05")
def test_a_newcomers_sink_lies_in_no_folder_that_another_reads(folders: SpecFolders) -> None:
    inside = {"sink": "landing/v/day=1"}
    pipeline(folders, "v")
    pipeline(folders, "evil", **inside)
    assert refused(folders.project) == {}, "nobody has run: they may belong together"
    note_run(folders.project, "v")
    assert refused(folders.project) == {"evil": "spec.sink-in-source"}
    pipeline(folders, "v", path="landing/v/*")
    assert refused(folders.project) == {}, "the reader asks for it"
    pipeline(folders, "v")
    pipeline(folders, "evil")
    note_run(folders.project, "evil")
    pipeline(folders, "evil", **inside)
    assert refused(folders.project) == {"evil": "spec.sink-in-source"}, "it moves in"
    note_run(folders.project, "evil")
    assert refused(folders.project) == {}, "who has run so before goes on"


@pytest.mark.capability("SAFE-05")
@pytest.mark.parametrize("sink", ["dags", "include/pipelines/a", ".drawdown/runs", "metastore.db"])
def test_no_sink_lies_in_the_project_itself(folders: SpecFolders, sink: str) -> None:
    folders.project_file.write_text(PROJECT.replace("storage_root: storage", "storage_root: ."))
    pipeline(folders, "a", sink=sink)
    assert refused(folders.project) == {"a": "spec.reserved-path"}


@pytest.mark.capability("SAFE-05")
def test_a_group_changes_its_schedule_when_its_last_member_does(folders: SpecFolders) -> None:
    for name in ("a", "b"):
        pipeline(folders, name, **FIN)
        note_run(folders.project, name)
    pipeline(folders, "a", more=FIN["more"].replace("hourly", "daily"))
    assert refused(folders.project) == {"a": "spec.group-schedule"}
    pipeline(folders, "b", more=FIN["more"].replace("hourly", "daily"))
    assert refused(folders.project) == {}


@pytest.mark.capability("SAFE-05")
def test_a_source_reads_the_table_of_the_sink_that_ran(folders: SpecFolders) -> None:
    pipeline(folders, "orders", keys="table: orders")
    note_run(folders.project, "orders")
    pipeline(folders, "reader")
    file = folders.root / "include" / "pipelines" / "reader" / "pipeline.yaml"
    files = 'format: json, path: landing/reader, schema: "id INT, at TIMESTAMP", options: {}'
    file.write_text(file.read_text().replace(files, "format: table, table: orders"))
    pipeline(folders, "zzz", sink="tables/mine", keys="table: orders")
    assert refused(folders.project) == {"zzz": "spec.shared-table"}
    assert folders.load("reader").sources["rows"].path == "tables/orders"


@pytest.mark.capability("SAFE-05")
def test_a_broken_upstream_does_not_break_who_waits_for_it(folders: SpecFolders) -> None:
    pipeline(folders, "up")
    pipeline(folders, "down", more='schedule: ["asset:up"]')
    pipeline(folders, "up", more="schedul: hourly")
    assert refused(folders.project) == {"up": "spec.unknown-key"}


@pytest.mark.capability("SAFE-05")
def test_a_metastore_of_an_earlier_version_knows_who_ran(folders: SpecFolders) -> None:
    pipeline(folders, "quar")
    note_run(folders.project, "quar", claims=False)
    pipeline(folders, "a", sink="tables/quar")
    assert refused(folders.project) == {"a": "spec.shared-sink"}


@pytest.mark.capability("SAFE-05")
def test_while_the_metastore_is_away_the_last_answer_holds(folders: SpecFolders) -> None:
    (folders.root / ".drawdown").mkdir()
    pipeline(folders, "quar")
    note_run(folders.project, "quar")
    pipeline(folders, "a", sink="tables/quar")
    assert refused(folders.project) == {"a": "spec.shared-sink"}
    (folders.root / "metastore.db").write_text("not a database, but long enough to be read as one" * 20)
    assert refused(folders.project) == {"a": "spec.shared-sink"}
    (folders.root / ".drawdown" / "standing.json").unlink()
    assert set(refused(folders.project)) == {"a", "quar"}
    assert "the metastore cannot be read" in errors(folders)["a"].what


@pytest.mark.capability("SAFE-05")
def test_a_project_without_collisions_opens_no_metastore(folders: SpecFolders) -> None:
    folders.project_file.write_text(
        PROJECT.replace("sqlite:///metastore.db", "postgresql+psycopg://u@localhost:1/x")
    )
    for name in ("a", "b"):
        pipeline(folders, name)
    assert len(list(iter_pipelines(folders.project))) == 2
    assert refused(folders.project) == {}
