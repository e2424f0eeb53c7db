"""What a pipeline without a folder has left: listed by `drawdown upkeep`, deleted by `drawdown remove`."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.command_line import answer
from tests.support.deaths import die
from tests.support.older_release import unpacked
from tests.support.sandbox import Sandbox
from tests.support.typed import refusal, typed


@pytest.fixture
def gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sandbox:
    """`clicks` has run twice, and its folder was removed."""
    sandbox = unpacked(tmp_path / "project")
    monkeypatch.chdir(sandbox.root)
    typed("metastore", "upgrade")
    folder = sandbox.root / "include/pipelines/clicks"
    folder.rename(sandbox.root / "clicks")
    return sandbox


def listed(sandbox: Sandbox) -> list[str]:
    """Names; `upkeep --all` wants a pipeline, so there is another."""
    other = sandbox.root / "include/pipelines/other"
    if not other.exists():
        shutil.copytree(sandbox.root / "clicks", other)
        spec = other / "pipeline.yaml"
        spec.write_text(spec.read_text().replace("tables/clicks", "tables/other"))
    found = answer(typed("upkeep", "--all", "--dry-run", "--json"))["removed"]
    assert all(each["files"] > 0 and each["bytes"] > 0 for each in found)
    return [each["name"] for each in found]


def test_upkeep_lists_what_is_left_and_remove_deletes_it(gone: Sandbox) -> None:
    assert listed(gone) == ["clicks"]
    assert "drawdown remove clicks" in typed("upkeep", "--all", "--dry-run")
    table = sorted((gone.storage / "tables/clicks").rglob("*"))
    assert refusal("remove", "clicks").id == "remove.unasked"
    typed("remove", "clicks", "--yes")
    assert listed(gone) == []
    assert not (gone.storage / "_drawdown/clicks").exists()
    assert not (gone.storage / "quarantine/clicks").exists()
    assert sorted((gone.storage / "tables/clicks").rglob("*")) == table
    assert refusal("remove", "clicks", "--yes").id == "remove.unknown"


def test_a_pipeline_that_is_there_held_or_renamed_is_not_removed(gone: Sandbox) -> None:
    before = gone.snapshot()
    folder = gone.root / "include/pipelines"
    shutil.copytree(gone.root / "clicks", folder / "clicks")
    assert refusal("remove", "clicks", "--yes").id == "remove.in-use"
    (folder / "clicks").rename(folder / "visits")
    spec = folder / "visits/pipeline.yaml"
    spec.write_text(f"first_name: clicks\n{spec.read_text()}")
    assert refusal("remove", "clicks", "--yes").id == "remove.renamed"
    shutil.rmtree(folder / "visits")
    with gone.metastore() as metastore:
        metastore.acquire("clicks", "a run", "r9", gone.project.lease_ttl.delta)
    assert refusal("remove", "clicks", "--yes").id == "lease.held"
    assert gone.snapshot() == before


@pytest.mark.parametrize("moment", ["after remove.files 1", "before remove.records"])
def test_cut_off_it_is_still_listed_and_the_same_command_completes_it(gone: Sandbox, moment: str) -> None:
    die(gone, "clicks", moment, "remove --yes")
    with gone.metastore() as metastore:
        assert metastore.names() == {"clicks"}
    typed("remove", "clicks", "--yes")
    with gone.metastore() as metastore:
        assert metastore.names() == set()
    assert not (gone.storage / "quarantine/clicks").exists()
