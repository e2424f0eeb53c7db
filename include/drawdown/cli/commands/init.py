"""`drawdown init`: creates a working pipeline, inferred from a sample, and a project if there is none."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from drawdown.cli.arguments import Json
from drawdown.cli.screen import err, out, print_json
from drawdown.errors import RefusedError, SpecError
from drawdown.scaffold.inferred_folder import folder_files, source_name
from drawdown.scaffold.project_files import (
    example_files,
    refuse_existing,
    requirement,
    sample_rows,
    write_folder,
    write_project,
)
from drawdown.scaffold.sample import read_sample
from drawdown.scaffold.suggestion import suggest
from drawdown.spec import find_root, iter_pipelines, load_project
from drawdown.storage import Storage
from drawdown.storage.put_if_absent import refuse_unsafe
from drawdown.values.paths import overlaps

if TYPE_CHECKING:
    from drawdown.scaffold.sample import Sample
    from drawdown.scaffold.suggestion import Suggestion
    from drawdown.spec import Project

_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")
_QUESTION = "A file with some rows of the source, or topic:NAME (Enter: an example)"


def init(
    name: Annotated[str, typer.Argument(help="Lower-case letters, digits and _, at most 63.")],
    from_sample: Annotated[
        Path | None,
        typer.Option(help="Infer the pipeline from this csv, JSON or parquet file.", show_default=False),
    ] = None,
    from_topic: Annotated[
        str | None, typer.Option(help="Infer it from the records of this Kafka topic.", show_default=False)
    ] = None,
    broker: Annotated[str, typer.Option(help="With --from-topic: a broker of project.yaml.")] = "default",
    storage: Annotated[
        str | None,
        typer.Option(help="Of a new project: s3://bucket/folder instead of a folder.", show_default=False),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing.")] = False,
    no_test: Annotated[bool, typer.Option("--no-test", help="Do not run the new pipeline's test.")] = False,
    as_json: Json = False,
) -> None:
    """Create a working pipeline: spec, transform, quality, a test, and an input file.

    With a sample it infers columns, watermark, key and first expectations, and runs the new test.

    Outside a project it also creates the project around it: include/project.yaml, dags, jobs, a CI workflow.
    """
    _check_name(name)
    place = _place(storage)
    _refuse_taken(place, name)
    if from_sample and from_topic:
        raise SpecError(
            "init.two-samples",
            "a pipeline is inferred from one sample",
            where="the command",
            do="name a file or a topic",
        )
    if not (yes or from_sample or from_topic) and sys.stdin.isatty():
        from_sample, from_topic = _asked()
    sample = _sample(place, from_sample, from_topic, broker)
    if sample is None:
        written = _write_example(place, name)
    else:
        found = suggest(sample)
        _show(sample, found)
        if not yes and sys.stdin.isatty():
            typer.confirm("Write this pipeline?", default=True, abort=True)
        written = _write_inferred(place, name, sample, found)
    if as_json:  # the test has an answer of its own: `drawdown test NAME --json`
        return print_json({"pipeline": name, "written": written})
    _show_written(place, written)
    tested = sample is not None and not no_test
    if tested:
        from drawdown.cli.commands.test import run_tests

        run_tests([name])
    return _show_next(name, tested=tested)


def _asked() -> tuple[Path | None, str | None]:
    answer = typer.prompt(_QUESTION, default="", show_default=False, err=True).strip()
    topic = answer.removeprefix("topic:")
    return (None, topic) if topic != answer else (Path(answer) if answer else None, None)


def _sample(place: _Place, file: Path | None, topic: str | None, broker: str) -> Sample | None:
    if file is not None:
        return read_sample(file.expanduser())
    if topic is None:
        return None
    from drawdown.scaffold.topic import read_topic

    with tempfile.TemporaryDirectory(prefix="drawdown-init-") as scratch:
        if place.is_new:
            write_project(Path(scratch))
        return read_topic(load_project(Path(scratch) if place.is_new else place.root), topic, broker)


def _show(sample: Sample, found: Suggestion) -> None:
    """Print what was inferred to standard error."""
    say = err().print
    say(f"{len(sample.rows) or len(sample.records):,} rows of {sample.format}", markup=False)
    for column in sample.columns:
        say(f"  {column.name}: {column.type}", markup=False)
    if found.event_time:
        say(f"watermark: {found.event_time.column.name}, delay {found.event_time.delay}", markup=False)
    else:
        say("watermark: none (no column is a time in every row)", markup=False)
    say(f"key: {found.key.name if found.key else 'none found'}", markup=False)


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise SpecError(
            "spec.pipeline-name",
            f"{name[:80]!r} cannot be a pipeline name",
            do="use lower-case letters, digits and _, at most 63, a letter first",
        )


@dataclass(frozen=True)
class _Place:
    """The project in which a pipeline is created; a new one may keep its data in a bucket."""

    root: Path
    is_new: bool
    bucket: str | None = None

    def refuse_bucket(self) -> None:
        """Raise, before anything is written, what is wrong with the bucket of a new project."""
        if self.bucket is None:
            return
        with tempfile.TemporaryDirectory(prefix="drawdown-init-") as scratch:
            write_project(Path(scratch), self.bucket)
            refuse_unsafe(Storage.of(load_project(Path(scratch))))


def _place(storage: str | None) -> _Place:
    """Outside a project, the current folder becomes one."""
    try:
        root = find_root()
    except SpecError:
        if os.environ.get("DRAWDOWN_PROJECT"):
            raise
        place = _Place(Path.cwd(), is_new=True, bucket=storage)
        place.refuse_bucket()
        return place
    if storage is not None:
        raise SpecError(
            "init.storage-is-set",
            "the project has a storage already; nothing was changed",
            where=str(root / "include" / "project.yaml"),
            do="correct `storage_root:` and `storages:` there, or call init outside a project",
        )
    return _Place(root, is_new=False)


def _folder(root: Path, name: str) -> Path:
    return root / "include" / "pipelines" / name


def _refuse_taken(place: _Place, name: str) -> None:
    """Refuse a pipeline whose folder exists, or whose table another pipeline writes already."""
    refuse_existing([_folder(place.root, name)])
    if place.is_new:
        return
    project = load_project(place.root)
    for other in iter_pipelines(project):
        path = None if isinstance(other, SpecError) else other.sink.path
        if not isinstance(other, SpecError) and path is not None and overlaps(path, f"tables/{name}"):
            raise RefusedError(
                "init.sink-taken",
                f"{other.name} already writes into {path}; nothing was changed",
                where=str(project.pipelines_dir),
                do="choose another name",
            )


def _write_example(place: _Place, name: str) -> list[str]:
    written, project = _written(place, name, example_files(name))
    return [*written, _landed(project, name, "sample.csv", sample_rows())]


def _write_inferred(place: _Place, name: str, sample: Sample, found: Suggestion) -> list[str]:
    source = source_name(sample.file.name.split(".")[0] if sample.file else str(sample.options["subscribe"]))
    written, project = _written(place, name, folder_files(name, source, sample, found))
    if sample.file is not None:
        written.append(_landed(project, name, sample.file.name, sample.file.read_bytes()))
    return written


def _written(place: _Place, name: str, files: dict[str, str | bytes]) -> tuple[list[str], Project]:
    written = write_project(place.root, place.bucket) if place.is_new else []
    project = load_project(place.root)
    folder = _folder(place.root, name)
    folder.parent.mkdir(parents=True, exist_ok=True)
    write_folder(folder, files)
    return [*map(str, written), f"{folder}/"], project


def _landed(project: Project, name: str, file_name: str, content: bytes) -> str:
    """Write the first input file unless there are files already, and return its path."""
    storage = Storage.of(project)
    path = f"landing/{name}/{file_name}"
    if not _holds_files(storage, f"landing/{name}"):
        storage.write_atomic(path, content)
    return storage.path(path)


def _holds_files(storage: Storage, folder: str) -> bool:
    try:
        return any(True for _ in storage.list_files(f"{folder}/*"))
    except FileNotFoundError:
        return False


def _show_written(place: _Place, written: list[str]) -> None:
    out().print("\n".join(f"[green]✓[/] {_shown(path)}" for path in written), soft_wrap=True)
    if place.is_new and str(place.root / "requirements.txt") not in written:
        out().print(
            f"requirements.txt already exists and was not changed; add: {requirement()}", markup=False
        )


def _show_next(name: str, *, tested: bool) -> None:
    steps = [f"drawdown run {name}", f"drawdown runs {name}", f"drawdown plan {name}"]
    if not tested:
        steps[:0] = [f"drawdown test {name}"]
    out().print("\nNext:\n" + "\n".join(f"  {step}" for step in steps[:3]))
    out().print(f"In Airflow a new DAG is paused; switch it on:\n  airflow dags unpause {name}")


def _shown(path: str) -> str:
    here = f"{Path.cwd()}/"
    return path.removeprefix(here)
