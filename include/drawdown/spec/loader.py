"""Loads Project and Pipeline from files; the only way specs are read."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from drawdown.errors import SpecError
from drawdown.kinds import code_at
from drawdown.local_services import with_local_services
from drawdown.spec.clusters.cluster import RunCluster
from drawdown.spec.pipeline import NEXT, Beside, Pipeline
from drawdown.spec.project import Project, ProjectFile
from drawdown.spec.project_wide.collisions import Collision, Flaw, RanBefore, decide
from drawdown.spec.project_wide.consistency import contradictions
from drawdown.spec.project_wide.table_paths import TablePaths
from drawdown.spec.quality import SLICE, Quality
from drawdown.spec.reading.environment import references, refuse_written_secrets, resolve
from drawdown.spec.reading.folder_files import FolderFiles
from drawdown.spec.reading.validation import Problem, spec_error, validate
from drawdown.spec.reading.yaml_source import Document, parse, read_text
from drawdown.spec.sink import Sink
from drawdown.values.column_names import column_names
from drawdown.values.model import NO_VARIABLES
from drawdown.values.nearest import did_you_mean

PROJECT_FILE = "include/project.yaml"
STATE = "DRAWDOWN_STATE"
"""Environment variable: the folder that relative paths of project.yaml, and `.drawdown`, start from."""
_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")


def find_root(start: Path | None = None) -> Path:
    """Return the folder with include/project.yaml: ``start`` (default: the current folder) or one above.

    Without ``start``, DRAWDOWN_PROJECT overrides the search. Raises SpecError.
    """
    named = os.environ.get("DRAWDOWN_PROJECT")
    if named and start is None:
        root = Path(named).resolve()
        if (root / PROJECT_FILE).is_file():
            return root
        raise SpecError(
            "spec.no-project",
            f"there is no {PROJECT_FILE} in DRAWDOWN_PROJECT",
            where=named,
            do="set it to the project root",
        )
    here = (start or Path.cwd()).resolve()
    for folder in (here, *here.parents):
        if (folder / PROJECT_FILE).is_file():
            return folder
    raise SpecError(
        "spec.no-project",
        f"no {PROJECT_FILE} in this folder or above",
        where=str(here),
        do="change to a project folder; or set DRAWDOWN_PROJECT to its root; or create one with"
        " `drawdown init NAME`",
    )


def load_project(start: Path | None = None) -> Project:
    """Load the project around ``start`` (default: DRAWDOWN_PROJECT, else the current folder). Raises
    SpecError."""
    root = find_root(start)
    document = parse(read_text(root / PROJECT_FILE, PROJECT_FILE), PROJECT_FILE)
    refuse_written_secrets(document)
    file = validate(ProjectFile, resolve(document, with_local_services(root, os.environ)))
    return Project.of(root, _state(root), file, references(document))


def _state(root: Path) -> Path:
    named = os.environ.get(STATE)
    if named and not Path(named).is_absolute():
        raise SpecError(
            "project.state-folder",
            f"{STATE} is not an absolute path",
            where=named,
            do="write an absolute path",
        )
    return Path(named) if named else root


def load_pipeline(project: Project, name: str, tables: TablePaths | None = None) -> Pipeline:
    """Load one pipeline by its folder's name. Raises SpecError with file:line.

    Args:
        tables: the named tables of the project; pass it when loading several pipelines, so that folders are
            read once.
    """
    folder = project.pipelines_dir / name
    if not _NAME.fullmatch(name):
        raise SpecError(
            "spec.pipeline-name",
            f"{name[:80]!r} cannot be a pipeline name",
            where="include/pipelines",
            do="use lower-case letters, digits and _, at most 63, a letter first",
        )
    if not folder.is_dir():
        raise SpecError(
            "spec.no-pipeline",
            f"there is no pipeline {name!r}; {did_you_mean(name, pipeline_names(project))}",
            where="include/pipelines",
            do=f"`drawdown init {name}` creates one",
        )
    return _load(project, _files(project, name), tables or _tables(project))


def load_next(project: Project, name: str) -> Pipeline | None:
    """Load the next version of a pipeline from the folder inside its own; None if there is none.

    Raises SpecError with file:line.
    """
    folder = project.pipelines_dir / name / NEXT
    if not folder.is_dir():
        return None
    files = FolderFiles(folder, f"include/pipelines/{name}/{NEXT}")
    return _load(project, files, _tables(project), next_of=name)


def _load(project: Project, files: FolderFiles, tables: TablePaths, next_of: str = "") -> Pipeline:
    document = parse(files.read("pipeline.yaml"), f"{files.shown}/pipeline.yaml")
    pipeline = validate(Pipeline, document)
    _check_names(project, pipeline, document)
    _find_tables(tables, pipeline, document)
    _attach(pipeline, files, document, next_of)
    pipeline._beside = replace(
        pipeline._beside,
        samples=project.samples,
        approvers=project.approvers,
        retention=project.retention,
        limits=project.limits,
        sql_limits=project.sql_limits,
    )
    return pipeline


def iter_pipelines(project: Project) -> Iterator[Pipeline | SpecError]:
    """Yield every pipeline by name, or its error instead; for the DAG factory, which shows both.

    Of pipelines that contradict each other, those that ran first are yielded, the others as errors.
    """
    names = pipeline_names(project)
    tables = _tables(project)
    found = [_loaded(project, name, tables) for name in names]
    there = [each for each in found if isinstance(each, Pipeline)]
    against = decide(list(contradictions(project, there, names)), lambda: _standing(project))
    for each in found:
        yield against.get(each.name, each) if isinstance(each, Pipeline) else each


def refusal_beside_others(project: Project, name: str) -> SpecError | None:
    """Return why a pipeline that can be read has to change, because of the others or the project."""
    return decide(_beside(project)[1], lambda: _standing(project)).get(name)


def readable_pipelines(project: Project) -> Sequence[Pipeline]:
    """Return all pipelines that can be read, whether they may run beside the others or not."""
    return _beside(project)[0]


_Beside = tuple[tuple[Pipeline, ...], tuple[Collision | Flaw, ...]]
_read_before: dict[Path, tuple[object, _Beside]] = {}


def _beside(project: Project) -> _Beside:
    """Return all pipelines that can be read, and what contradicts what among them.

    They are read once a process, until a spec changes: an application asks for each of its pipelines.
    """
    key = _read_at(project)
    known = _read_before.get(project.root)
    if known is None or known[0] != key:
        names = pipeline_names(project)
        tables = _tables(project)
        found = (_loaded(project, name, tables) for name in names)
        there = tuple(each for each in found if isinstance(each, Pipeline))
        known = _read_before[project.root] = key, (there, tuple(contradictions(project, there, names)))
    return known[1]


def _read_at(project: Project) -> object:
    """Return what changes when a spec does."""
    specs = [project.pipelines_dir / name / "pipeline.yaml" for name in pipeline_names(project)]
    stats = [file.stat() if file.exists() else None for file in (project.root / PROJECT_FILE, *specs)]
    return [str(each) for each in specs], [each and (each.st_mtime_ns, each.st_size) for each in stats]


def _standing(project: Project) -> RanBefore | None:
    # The metastore stands above the specs, and is loaded for a collision only.
    found: RanBefore | None = code_at("drawdown.metastore.standing:read_standing")(project)
    return found


def load_pipelines(project: Project) -> list[Pipeline]:
    """Load every pipeline, sorted by name. Raises the first SpecError."""
    pipelines = []
    for each in iter_pipelines(project):
        if isinstance(each, SpecError):
            raise each
        pipelines.append(each)
    return pipelines


def _loaded(project: Project, name: str, tables: TablePaths) -> Pipeline | SpecError:
    try:
        return load_pipeline(project, name, tables)
    except SpecError as error:
        return error
    except Exception as cause:  # noqa: BLE001 - one folder must not hide all others
        return SpecError(
            "spec.unexpected",
            f"{name} cannot be read: {type(cause).__name__}: {cause}",
            where=f"include/pipelines/{name}",
            do="check the files in that folder for unexpected types",
        )


def _tables(project: Project) -> TablePaths:
    files = ((name, _files(project, name)) for name in pipeline_names(project))
    return TablePaths(files, lambda: _standing(project))


def _files(project: Project, name: str) -> FolderFiles:
    return FolderFiles(project.pipelines_dir / name, f"include/pipelines/{name}")


def pipeline_names(project: Project) -> list[str]:
    """Return the folder names of pipelines, sorted; the order of ``iter_pipelines``."""
    if not project.pipelines_dir.is_dir():
        return []
    with os.scandir(project.pipelines_dir) as entries:
        return sorted(entry.name for entry in entries if _is_folder(entry) and entry.name[0] not in "._")


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a looping link: reported as an error of this pipeline when it is loaded
        return True


def _check_names(project: Project, pipeline: Pipeline, document: Document) -> None:
    problems = []
    if pipeline.cluster not in project.clusters:
        problems.append(_unknown("cluster", pipeline.cluster, project.clusters, ("cluster",)))
    for name, source in pipeline.sources.items():
        if source.format == "kafka" and source.broker not in project.brokers:
            problems.append(_unknown("broker", source.broker, project.brokers, ("sources", name, "broker")))
        if source.arrivals is not None and source.arrivals.broker not in project.brokers:
            of_topic = ("sources", name, "arrivals", "broker")
            problems.append(_unknown("broker", source.arrivals.broker, project.brokers, of_topic))
        if source.storage is not None and source.storage not in project.storages:
            at = ("sources", name, "storage")
            problems.append(_unknown("storage", source.storage, project.storages, at))
    if pipeline.sink.format == "kafka" and pipeline.sink.broker not in project.brokers:
        problems.append(_unknown("broker", pipeline.sink.broker, project.brokers, ("sink", "broker")))
    if pipeline.sink.format == "postgres" and pipeline.sink.database not in project.databases:
        found = pipeline.sink.database
        problems.append(_unknown("database", found, project.databases, ("sink", "database")))
    for index, name in enumerate(pipeline.alerts.to or ()):
        if name not in project.alert_targets:
            problems.append(_unknown("target", name, project.alert_targets, ("alerts", "to", index)))
    problems += _own_tasks(project, pipeline)
    if problems:
        raise spec_error(document, problems)


def _own_tasks(project: Project, pipeline: Pipeline) -> Iterator[Problem]:
    """Yield contradictions between a pipeline's `airflow:` and project.yaml, which refuses the same."""
    own, cluster = pipeline.airflow, project.clusters.get(pipeline.cluster)
    if own.retry_delay is not None and own.retry_delay.delta <= project.lease_ttl.delta:
        yield _contradicts(
            "retry_delay",
            "a retry would meet the dead attempt's lease",
            f"longer than lease_ttl ({project.lease_ttl})",
        )
    if own.execution_timeout is None:
        return
    ends = {"upkeep.vacuum": project.upkeep.vacuum}
    if isinstance(cluster, RunCluster):
        ends[f"clusters.{pipeline.cluster}.ttl"] = cluster.ttl
    for key, end in ends.items():
        if end.delta <= own.execution_timeout.delta:
            what = f"{key} of {PROJECT_FILE} ({end}) is shorter than the longest try"
            yield _contradicts("execution_timeout", what, "smaller than that")


def _contradicts(key: str, what: str, do: str) -> Problem:
    return Problem("spec.contradiction", what, ("airflow", key), f"make it {do}")


def _find_tables(tables: TablePaths, pipeline: Pipeline, document: Document) -> None:
    """Give every table source the path of the sink with its name."""
    named = {name: source for name, source in pipeline.sources.items() if source.table is not None}
    if not named:
        return
    paths = tables.by_name
    for name, source in named.items():
        table = str(source.table)
        if len(tables.users(table)) > 1 and table not in paths:
            what = (
                f"{' and '.join(tables.users(table))} call their table {table}, and none of them has run yet"
            )
            do = "give the sinks of the others another `table:`"
            raise spec_error(document, [Problem("spec.shared-table", what, ("sources", name, "table"), do)])
        if table not in paths:
            what = f"no sink has `table: {table}`; {did_you_mean(table, paths)}"
            do = "correct the name, or add it to the sink of the pipeline that writes the table"
            raise spec_error(document, [Problem("spec.unknown-table", what, ("sources", name, "table"), do)])
        pipeline.sources[name] = source.model_copy(update={"path": paths[table]})


def _unknown(kind: str, name: str, known: Mapping[str, object], path: tuple[str | int, ...]) -> Problem:
    what = f"{PROJECT_FILE} has no {kind} {name!r}; {did_you_mean(name, known)}"
    return Problem(f"spec.unknown-{kind}", what, path, f"correct the name, or add it to {PROJECT_FILE}")


def _attach(pipeline: Pipeline, files: FolderFiles, document: Document, next_of: str) -> None:
    """Read the files beside pipeline.yaml into private attributes, because they are not keys of it."""
    for name, source in pipeline.sources.items():
        inline = source.schema_text if source.schema_file is None else None
        named_at = document.where(("sources", name, "schema"))
        source._schema_ddl = inline or _ddl(files, source.schema_file, named_at)
        if source.reader is not None:
            files.read(source.reader, document.where(("sources", name, "reader")))
    sink = pipeline.sink
    inline = sink.schema_text if sink.schema_file is None else None
    sink._schema_ddl = inline or _ddl(files, sink.schema_file, document.where(("sink", "schema")))
    _check_sink_columns(pipeline.sink, document)
    if pipeline.sink.function is not None:
        files.read(pipeline.sink.function, document.where(("sink", "function")))
    beside = Beside(
        folder=files.folder,
        next_of=next_of,
        transform_text=_transform(files, pipeline.transform, document.where(("transform",))),
    )
    if files.has("quality.yaml"):
        beside = replace(beside, quality=_quality(pipeline, files))
    if files.has("listener.py"):
        files.read("listener.py")
        beside = replace(beside, has_listener=True)
    pipeline._beside = beside


def _transform(files: FolderFiles, name: str, named_at: str) -> str:
    text = files.read(name, named_at)
    if name.endswith(".sql") and "${" in text:
        line = text[: text.index("${")].count("\n") + 1
        raise SpecError(
            "spec.sql-variable",
            "variables are not allowed in SQL: it contains `${`",
            where=f"{files.shown}/{name}:{line}",
            do=NO_VARIABLES,
        )
    return text


def _check_sink_columns(sink: Sink, document: Document) -> None:
    """Check that the sink's columns are in its schema with the same spelling: stores compare names
    exactly."""
    if sink.schema_ddl is None:
        return
    known = column_names(sink.schema_ddl)
    named: dict[tuple[str | int, ...], str] = {("time_column",): sink.time_column} if sink.time_column else {}
    named |= {("keys", index): name for index, name in enumerate(sink.keys)}
    named |= {("partition_by", index): name for index, name in enumerate(sink.partition_by)}
    problems = [
        Problem(
            "spec.unknown-column",
            f"{sink.schema_file or 'the schema'} has no column {name!r}; {did_you_mean(name, known)}",
            ("sink", *at),
            "correct the name, or add the column to the schema",
        )
        for at, name in named.items()
        if name not in known
    ]
    if problems:
        raise spec_error(document, problems)


def _ddl(files: FolderFiles, name: str | None, named_at: str) -> str | None:
    if name is None:
        return None
    text = files.read(name, named_at).strip()
    if not text:
        raise SpecError(
            "spec.empty-schema",
            f"{files.shown}/{name} is empty",
            where=named_at,
            do="write columns: `id BIGINT, ...`",
        )
    return text


def _quality(pipeline: Pipeline, files: FolderFiles) -> Quality:
    document = parse(files.read("quality.yaml"), f"{files.shown}/quality.yaml")
    quality = validate(Quality, document)
    streaming = pipeline.streaming_sources
    problems = []
    if quality.audits and not pipeline.sink.auditable:
        what = f"an audit cannot read back what a {pipeline.sink.format} sink was given"
        do = "write the checks as `rules:`, which judge each row before the sink; or use a delta sink"
        if pipeline.sink.format == "kafka":
            do = (
                "write the checks as `rules:`, which judge each row before the sink; or set `delivery:"
                " exactly_once`"
            )
        problems.append(
            Problem(
                "spec.contradiction",
                what,
                (next(key for key in ("expectations", "queries", "history") if getattr(quality, key)),),
                do,
            )
        )
    if quality.queries and SLICE in pipeline.sources:
        what = f"a source is called {SLICE!r}, the name for the audited rows in queries"
        problems.append(Problem("spec.contradiction", what, ("queries",), "give the source another name"))
    for index, rule in enumerate(quality.rules):
        if rule.source is None and len(streaming) > 1:
            what = f"rule {rule.name!r} must name its source: {', '.join(streaming)}"
            problems.append(Problem("spec.missing-key", what, ("rules", index), "add `source:`"))
        elif rule.source is not None and rule.source not in streaming:
            what = f"there is no streaming source {rule.source!r}; {did_you_mean(rule.source, streaming)}"
            problems.append(
                Problem("spec.unknown-source", what, ("rules", index, "source"), "correct the name")
            )
    if problems:
        raise spec_error(document, problems)
    return quality
