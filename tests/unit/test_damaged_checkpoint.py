"""Whatever is removed, torn or replaced below a checkpoint: one error, with the command that helps.

A real checkpoint of four batches with state, written by an earlier release, without Spark.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from drawdown.application import SparkApplication
from drawdown.checkpoint import MARKS
from drawdown.drain.before_spark import refuse_before_spark
from drawdown.errors import RefusedError
from drawdown.metastore import Metastore, this_process
from drawdown.recovery.overview import overview
from drawdown.recovery.repair.advice import refuse_torn, torn_error
from drawdown.recovery.repair.faults import all_faults
from drawdown.recovery.repair.repair import repair
from drawdown.spec import load_pipeline, load_project
from drawdown.workspace import Generation, Workspace

RELEASE = Path(__file__).parents[1] / "fixtures/release_5a70180"
CHECKPOINT = "storage/_drawdown/clicks/checkpoint-1"
Damage = Callable[[Path], None]


def _removed(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def _emptied(path: Path) -> None:
    was_folder = path.is_dir()
    _removed(path)
    path.mkdir() if was_folder else path.touch()


def _garbage(path: Path) -> None:
    path.write_bytes(b"\xff\xfe garbage \0")


def _json_of_another_kind(path: Path) -> None:
    path.write_bytes(b"v1\n[]\n3")


def _truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _other_kind(path: Path) -> None:
    """A file where a folder was, or the other way round."""
    was_folder = path.is_dir()
    _removed(path)
    path.write_text("a file") if was_folder else path.mkdir()


OF_FILES: tuple[Damage, ...] = (
    _removed,
    _emptied,
    _garbage,
    _json_of_another_kind,
    _truncated,
    _other_kind,
)
OF_FOLDERS: tuple[Damage, ...] = (_removed, _emptied, _other_kind)


@pytest.fixture(scope="module")
def upgraded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project with a metastore as this release has it."""
    root = Path(shutil.copytree(RELEASE, tmp_path_factory.mktemp("release") / "project"))
    Metastore.upgrade(load_project(root).metastore_url)
    return root


@pytest.fixture
def generation(upgraded: Path, tmp_path: Path) -> Iterator[Generation]:
    project = load_project(Path(shutil.copytree(upgraded, tmp_path / "project")))
    with Workspace.open(project) as workspace:
        yield Generation.of(workspace, load_pipeline(project, "clicks"))


def test_a_drain_refuses_it_before_spark_starts_and_leaves_a_record(generation: Generation) -> None:
    def no_spark() -> dict[str, str]:
        raise AssertionError("Spark was about to start")

    _damage(generation, "offsets/3", _garbage)
    application = SparkApplication(generation.workspace, no_spark, {"command": "drawdown run"})
    [report] = application.drain_all([generation.pipeline])
    assert report.error is not None
    assert report.error.id == "checkpoint.torn"
    [run, *_] = generation.metastore.runs("clicks", limit=1)
    assert (run.state, run.error and run.error["id"]) == ("failed", "checkpoint.torn")


def test_a_run_that_is_active_may_still_change_it(generation: Generation) -> None:
    _damage(generation, "offsets/3", _garbage)
    lease = generation.metastore.acquire("clicks", this_process(), "r1", timedelta(minutes=1))
    refuse_before_spark(generation)
    generation.metastore.release(lease)
    with pytest.raises(RefusedError, match=r"checkpoint\.torn"):
        refuse_before_spark(generation)


def _damage(generation: Generation, path: str, damage: Damage) -> Path:
    target = generation.project.root / CHECKPOINT / path
    damage(target)
    return target


@pytest.mark.parametrize(
    ("path", "damage", "what", "command"),
    [
        # What the next run reads, and the metastore can say again.
        ("commits/3", _removed, "batch 3 was committed", "checkpoint repair"),
        ("commits/3", _other_kind, "batch 3 was committed", "checkpoint repair"),
        ("commits/3", _emptied, "it is empty", "checkpoint repair"),
        ("commits/3", _truncated, "not JSON", "checkpoint repair"),
        ("commits", _removed, "was committed", "checkpoint repair"),
        ("commits", _other_kind, "was committed", "checkpoint repair"),
        ("offsets/3", _removed, "batch 3 is committed, but the file", "checkpoint repair"),
        ("offsets/3", _garbage, "not UTF-8", "checkpoint repair"),
        (
            "offsets/3",
            _other_kind,
            "batch 3 is committed, but the file",
            "checkpoint repair",
        ),
        ("offsets/2", _removed, "the offsets of batch 2", "checkpoint repair"),
        ("metadata", _removed, "query's id is missing", "checkpoint repair"),
        ("metadata", _garbage, "not JSON", "checkpoint repair"),
        ("metadata", _other_kind, "a folder where a file should be", "checkpoint repair"),
        ("state/0/_metadata/metadata", _removed, "checksum belongs to is missing", "checkpoint repair"),
        ("state/0/0/_metadata/schema", _removed, "checksum belongs to is missing", "checkpoint repair"),
        # What only a copy has.
        ("offsets", _removed, "the file with its offsets", "restore the files from your own copy"),
        ("offsets", _other_kind, "the file with its offsets", "restore the files from your own copy"),
        ("sources", _removed, "entry 0, which a batch has read", "restore the files from your own copy"),
        ("sources", _other_kind, "entry 0, which a batch has read", "restore the files from your own copy"),
        ("sources/0", _emptied, "entry 0, which a batch has read", "restore the files from your own copy"),
        ("sources/0", _other_kind, "entry 0, which a batch has read", "restore the files from your own copy"),
        ("sources/0/1", _removed, "entry 1, which a batch has read", "restore the files from your own copy"),
        ("sources/0/1", _truncated, "not JSON", "restore the files from your own copy"),
        (
            "state",
            _removed,
            "the state folder of the query is missing",
            "restore the files from your own copy",
        ),
        (
            "state",
            _other_kind,
            "the state folder of the query is missing",
            "restore the files from your own copy",
        ),
        (
            "state/0/0/1.changelog",
            _removed,
            "there is no file of version 1",
            "restore the files from your own copy",
        ),
        ("state/0/0/1.changelog", _emptied, "it is empty", "restore the files from your own copy"),
        ("state/0/_metadata/metadata", _garbage, "not UTF-8", "restore the files from your own copy"),
        # An earlier batch does without it.
        ("state/0/0/4.changelog", _removed, "there is no file of version 4", "rewind clicks --to 2"),
        ("state/0/0/4.changelog", _other_kind, "there is no file of version 4", "rewind clicks --to 2"),
        # All of it.
        ("", _removed, "its batches are in the sink", "restore the files from your own copy"),
        ("", _emptied, "its batches are in the sink", "restore the files from your own copy"),
        ("", _other_kind, "its batches are in the sink", "restore the files from your own copy"),
    ],
)
def test_a_run_is_refused_before_spark_with_the_way_back(
    generation: Generation, path: str, damage: Damage, what: str, command: str
) -> None:
    _damage(generation, path, damage)
    with pytest.raises(RefusedError) as refused:
        refuse_torn(generation)
    alone = "checkpoint.metadata-missing" if (path, damage) == ("metadata", _removed) else "checkpoint.torn"
    assert refused.value.id == (alone if path else "checkpoint.missing")
    assert what in refused.value.what
    assert command in refused.value.do
    if command == "checkpoint repair":
        lease = generation.metastore.acquire("clicks", "tests", "run", generation.project.lease_ttl.delta)
        repair(generation, lambda: lease)
        refuse_torn(generation)


def test_the_lost_commit_of_the_last_batch_alone_ends_no_run(generation: Generation) -> None:
    """Spark executes the batch again; a repair writes the entry without that."""
    for path in ("commits/3", "commits/.3.crc"):
        _damage(generation, path, _removed)
    refuse_torn(generation)
    [lost] = all_faults(generation)
    assert (lost.part, lost.number) == ("commits", 3)
    _damage(generation, "commits/2", _removed)
    with pytest.raises(RefusedError, match="batch 2 was committed"):
        refuse_torn(generation)


def test_a_command_that_was_cut_off_is_named_before_what_it_has_not_brought_back(
    generation: Generation,
) -> None:
    _damage(generation, "", _emptied)
    mark = next(iter(MARKS))
    (generation.project.root / CHECKPOINT / mark).write_text("given\n")
    with pytest.raises(RefusedError, match="was cut off before its end") as refused:
        refuse_torn(generation)
    assert "completes it" in refused.value.do


@pytest.mark.parametrize(
    "paths",
    [
        ["offsets", "offsets/3", "offsets/.3.crc", "commits/3", "sources/0/1", "state/0/0/_metadata/schema"],
        pytest.param(None, marks=pytest.mark.full, id="all"),
    ],
)
def test_any_damage_is_one_error_and_changes_nothing(
    generation: Generation, upgraded: Path, paths: list[str] | None
) -> None:
    """Found or harmless, never another exception."""
    root, whole = generation.project.root / CHECKPOINT, upgraded / CHECKPOINT
    for path in paths or [str(each.relative_to(whole)) for each in [whole, *sorted(whole.rglob("*"))]]:
        for damage in OF_FOLDERS if (whole / path).is_dir() else OF_FILES:
            _damage(generation, path, damage)
            before = _everything(root)
            for look in (refuse_torn, overview, _verified):
                error = _refusal(look, generation)
                about = f"{path} {damage.__name__}: {error}"
                assert error is None or (error.id.startswith("checkpoint.") and error.where and error.do), (
                    about
                )
            assert _everything(root) == before
            _put_back(root / path, whole / path)


def _put_back(path: Path, whole: Path) -> None:
    if path.exists():
        _removed(path)
    shutil.copytree(whole, path) if whole.is_dir() else shutil.copy2(whole, path)


def _refusal(look: Callable[[Generation], object], generation: Generation) -> RefusedError | None:
    try:
        look(generation)
    except RefusedError as error:
        return error
    return None


def _verified(generation: Generation) -> None:
    if faults := all_faults(generation):
        raise torn_error(generation, faults)


def _everything(root: Path) -> dict[str, bytes | None]:
    paths = [root, *root.rglob("*")]
    return {str(path): path.read_bytes() if path.is_file() else None for path in paths}
