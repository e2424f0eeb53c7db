"""Every pipeline and group of a project as a DAG; dags/drawdown.py calls `build_dags` and nothing else.

A folder that is broken becomes a DAG of the same id, tagged `broken`: its page shows the error, and its
only task fails with it. It is not an import error on purpose: Airflow keeps those per file, and marks
all DAGs of the file as stale and stops scheduling them (airflow/dag_processing/collection.py).
"""

from __future__ import annotations

import gc
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

from airflow.sdk import DAG, get_parsing_context

from drawdown.airflow.broken_dag import broken_dag
from drawdown.airflow.decide_dag import decide_dag
from drawdown.airflow.decisions import DECIDE
from drawdown.airflow.drain_dag import drain_dag
from drawdown.airflow.freshness_dag import FRESHNESS, freshness_dag
from drawdown.airflow.rebuild_dag import REBUILD, rebuild_dag
from drawdown.airflow.replay_dag import SUFFIX, replay_dag
from drawdown.airflow.replay_timetable import timetable_is_known
from drawdown.airflow.upkeep_dag import UPKEEP, upkeep_dag
from drawdown.errors import SpecError
from drawdown.spec import Pipeline, Project, iter_pipelines, load_pipeline, load_project, pipeline_names

_OWN = (DECIDE, FRESHNESS, REBUILD, UPKEEP)


def build_dags(project_root: Path) -> dict[str, DAG]:
    """The DAGs by id: one for each group, and for each pipeline without a group; and those for all of them.

    When Airflow parses for one task, only that task's DAG is built.

    Raises:
        SpecError: project.yaml itself is broken; without it nothing can run.
    """
    project = load_project(project_root)
    wanted = get_parsing_context().dag_id
    if wanted is not None and (alone := _own_dag(project, wanted)) is not None:
        return {wanted: alone}
    with _garbage_left_for_later():
        dags = _all_dags(project, wanted)
    return {dag_id: dag for dag_id, dag in dags.items() if wanted in (None, dag_id)}


@contextmanager
def _garbage_left_for_later() -> Iterator[None]:
    """No collection while only objects that stay are made: that was a third of the time of 1,000 DAGs."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _own_dag(project: Project, dag_id: str) -> DAG | None:
    """The DAG of a pipeline without a group, from its folder alone; None when that does not settle it."""
    if dag_id == DECIDE:
        return decide_dag(project)
    if dag_id == REBUILD:
        return rebuild_dag(project)
    if dag_id == UPKEEP:
        return upkeep_dag(project)
    if dag_id == FRESHNESS:
        there = iter_pipelines(project)
        return freshness_dag(project, (each for each in there if isinstance(each, Pipeline)))
    try:
        if dag_id.endswith(SUFFIX):
            replayed = load_pipeline(project, dag_id.removesuffix(SUFFIX))
            return _replay_dag(project, replayed) if replayed.replay is not None else None
        pipeline = load_pipeline(project, dag_id)
    except SpecError:
        return None
    return None if pipeline.group else _dag_or_broken(project, dag_id, [pipeline])


def _all_dags(project: Project, wanted: str | None) -> dict[str, DAG]:
    members, broken = _read(project)
    dags = {dag_id: broken_dag(dag_id, error) for dag_id, error in broken.items()}
    for dag_id, pipelines in members.items():
        if wanted in (None, dag_id):
            dags[dag_id] = _dag_or_broken(project, dag_id, pipelines)
    if wanted is None:
        if members:
            dags[UPKEEP] = upkeep_dag(project)
        if any(pipeline.freshness is not None for pipeline in chain.from_iterable(members.values())):
            dags[FRESHNESS] = freshness_dag(project, chain.from_iterable(members.values()))
        for pipeline in chain.from_iterable(members.values()):
            if pipeline.may_be_held and DECIDE not in dags:
                dags[DECIDE] = decide_dag(project)
            if pipeline.sink.format == "delta" and REBUILD not in dags:
                dags[REBUILD] = rebuild_dag(project)
            if pipeline.replay is not None:
                dags.setdefault(f"{pipeline.name}{SUFFIX}", _replay_dag(project, pipeline))
    return dags


def _replay_dag(project: Project, pipeline: Pipeline) -> DAG:
    """Without the plugin, Airflow could not keep the DAG, and would drop all others of the file with it."""
    if not timetable_is_known():
        error = SpecError(
            "airflow.no-plugin",
            f"a replay of {pipeline.name} needs a timetable, which comes with Drawdown's Airflow plugin",
            where="the folder `plugins_folder` of Airflow's configuration",
            do="copy plugins/drawdown_plugin.py into it, and restart Airflow",
        )
        return broken_dag(f"{pipeline.name}{SUFFIX}", error)
    try:
        return replay_dag(project, pipeline)
    except SpecError as error:
        return broken_dag(f"{pipeline.name}{SUFFIX}", error)
    except Exception as cause:  # noqa: BLE001 - as for its drains
        return broken_dag(f"{pipeline.name}{SUFFIX}", _unexpected(pipeline.name, cause))


def _read(project: Project) -> tuple[Mapping[str, list[Pipeline]], dict[str, SpecError]]:
    """Pipelines by the DAG they belong to, and the errors of those that cannot be read."""
    members: dict[str, list[Pipeline]] = defaultdict(list)
    broken: dict[str, SpecError] = {}
    for name, found in zip(pipeline_names(project), iter_pipelines(project), strict=True):
        if isinstance(found, SpecError):
            broken[_as_dag_id(name)] = found
        else:
            members[_as_dag_id(found.group or found.name)].append(found)
    return members, broken


def _dag_or_broken(project: Project, dag_id: str, pipelines: list[Pipeline]) -> DAG:
    try:
        _check_one_application(dag_id, pipelines)
        _refuse_test_only(pipelines)
        _refuse_taken_name(pipelines)
        return drain_dag(project, dag_id, pipelines)
    except SpecError as error:
        return broken_dag(dag_id, error)
    except Exception as cause:  # noqa: BLE001 - whatever it is, it must not take the other DAGs along
        return broken_dag(dag_id, _unexpected(dag_id, cause))


def _unexpected(dag_id: str, cause: Exception) -> SpecError:
    return SpecError(
        "spec.unexpected",
        f"no DAG can be made of {dag_id}: {type(cause).__name__}: {cause}",
        where=f"include/pipelines/{dag_id}",
        do="this is a fault of Drawdown: report it with this text, and leave out the key that it names",
    )


def _check_one_application(dag_id: str, pipelines: Iterable[Pipeline]) -> None:
    """What cannot be one DAG with one Spark application. Raises SpecError."""
    names = {pipeline.name: pipeline for pipeline in pipelines}
    alone = names.get(dag_id)
    if alone is not None and alone.group is None and len(names) > 1:
        raise SpecError(
            "spec.group-name",
            f"a pipeline and a group are both named {dag_id!r}, and each is a DAG",
            where=f"include/pipelines/{dag_id}",
            do="rename one of them",
        )
    if len({pipeline.cluster for pipeline in names.values()}) > 1:
        raise SpecError(
            "spec.group-cluster",
            f"group {dag_id!r} is one Spark application, but its pipelines name different clusters",
            where=", ".join(f"include/pipelines/{name}/pipeline.yaml" for name in names),
            do="give every pipeline of the group the same cluster",
        )


def _refuse_test_only(pipelines: Iterable[Pipeline]) -> None:
    """No DAG drains a source made for tests, not even one that only people start. Raises SpecError."""
    for pipeline in pipelines:
        for at, why in pipeline.test_only.items():
            raise SpecError(
                "spec.test-only",
                f"{pipeline.name} cannot be drained by Airflow ({'.'.join(at)}): {why}",
                where=f"include/pipelines/{pipeline.name}/pipeline.yaml",
                do=f"`drawdown run {pipeline.name}` on a developer's machine, or use tables, files or Kafka",
            )


def _refuse_taken_name(pipelines: Iterable[Pipeline]) -> None:
    """Raises SpecError."""
    for pipeline in pipelines:
        if (pipeline.group or pipeline.name) in _OWN:
            raise SpecError(
                "spec.taken-name",
                f"{pipeline.group or pipeline.name!r} is a DAG of Drawdown's own",
                where=f"include/pipelines/{pipeline.name}",
                do="rename the group" if pipeline.group else "rename the pipeline",
            )


def _as_dag_id(name: str) -> str:
    """The DAG of a folder or group, which may be named what no DAG can be, or as one of Drawdown's own is.

    Such a DAG is broken, and takes the place of none that other pipelines need.
    """
    return f"{name}_" if name in _OWN else re.sub(r"[^A-Za-z0-9_.\-]", "_", name)[:200]
