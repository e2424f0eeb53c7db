"""Make a DAG for every pipeline and group of a project; dags/drawdown.py only calls `build_dags`.

A broken folder becomes a DAG of the same id, tagged `broken`: its page shows the error, and its only task
fails with it. An import error would be worse: Airflow keeps those per file, marks all DAGs of the file as
stale and stops scheduling them (airflow/dag_processing/collection.py).
"""

from __future__ import annotations

import gc
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

from airflow.sdk import DAG, get_parsing_context

from drawdown.airflow.dags.broken import BROKEN, broken_dag
from drawdown.airflow.dags.decide import decide_dag
from drawdown.airflow.dags.drain import drain_dag
from drawdown.airflow.dags.freshness import freshness_dag
from drawdown.airflow.dags.rebuild import rebuild_dag
from drawdown.airflow.dags.replay import replay_dag
from drawdown.airflow.dags.upkeep import upkeep_dag
from drawdown.airflow.replay_timetable import timetable_is_known
from drawdown.airflow.versioned_root import refuse_state_that_moves
from drawdown.errors import SpecError
from drawdown.spec import Pipeline, Project, iter_pipelines, load_pipeline, load_project, pipeline_names
from drawdown.values.dag_ids import DECIDE, FRESHNESS, OWN, REBUILD, REPLAY_SUFFIX, UPKEEP, replay_dag_id


def build_dags(project_root: Path) -> dict[str, DAG]:
    """Return the DAGs by id: one per group, one per pipeline without a group, and the shared ones.

    When Airflow parses for one task, only that task's DAG is built.

    Raises:
        SpecError: nothing can run: project.yaml itself is broken, or the state of runs would not be found
            after the next deployment.
    """
    project = load_project(project_root)
    refuse_state_that_moves(project_root, project)
    wanted, task = get_parsing_context()[:2]
    if wanted is not None and task != BROKEN and (alone := _own_dag(project, wanted)) is not None:
        return {wanted: alone}
    with _garbage_left_for_later():
        dags = _all_dags(project, wanted)
    return {dag_id: dag for dag_id, dag in dags.items() if wanted in (None, dag_id)}


@contextmanager
def _garbage_left_for_later() -> Iterator[None]:
    """Pause garbage collection while lasting objects are made: it took a third of the time of 1,000 DAGs."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _own_dag(project: Project, dag_id: str) -> DAG | None:
    """Return a DAG that can be built without reading all pipelines; None when that is not possible."""
    if dag_id == DECIDE:
        return decide_dag(project)
    if dag_id == REBUILD:
        return rebuild_dag(project)
    if dag_id == UPKEEP:
        return upkeep_dag(project)
    if dag_id == FRESHNESS:
        there = iter_pipelines(project)
        return freshness_dag(project, (each for each in there if isinstance(each, Pipeline)))
    if _may_be_anothers(project, dag_id):
        return None
    try:
        if dag_id.endswith(REPLAY_SUFFIX):
            replayed = load_pipeline(project, dag_id.removesuffix(REPLAY_SUFFIX))
            return _replay_dag(project, replayed) if replayed.replay is not None else None
        pipeline = load_pipeline(project, dag_id)
    except SpecError:
        return None
    return None if pipeline.group else _dag_or_broken(project, dag_id, [pipeline])


def _may_be_anothers(project: Project, dag_id: str) -> bool:
    """Whether a folder could take this DAG from the group or the pipeline whose it is.

    That is a newcomer with the name of a group, or one with `replay:` whose name and suffix are another's.
    Texts alone are looked at: when it may be, all specs are read and compared.
    """
    names = set(pipeline_names(project))
    if dag_id.endswith(REPLAY_SUFFIX):
        return dag_id in names
    if dag_id not in names:
        return False
    member = re.compile(rf"""group["']?\s*:\s*["']?{re.escape(dag_id)}\b""".encode())
    specs = (project.pipelines_dir / name / "pipeline.yaml" for name in names if name != dag_id)
    return any(member.search(spec.read_bytes()) for spec in specs if spec.is_file())


def _all_dags(project: Project, wanted: str | None) -> dict[str, DAG]:
    members, broken = _read(project)
    dags = {dag_id: broken_dag(dag_id, error) for dag_id, error in broken.items()}
    for dag_id, pipelines in members.items():
        if wanted in (None, dag_id):
            dags |= _dags_of(project, dag_id, pipelines)
    if wanted is None:
        if members:
            dags[UPKEEP] = upkeep_dag(project)
            dags[FRESHNESS] = freshness_dag(project, chain.from_iterable(members.values()))
        for pipeline in chain.from_iterable(members.values()):
            if pipeline.may_be_held and DECIDE not in dags:
                dags[DECIDE] = decide_dag(project)
            if pipeline.sink.format == "delta" and REBUILD not in dags:
                dags[REBUILD] = rebuild_dag(project)
            if pipeline.replay is not None:
                dags[replay_dag_id(pipeline.name)] = _replay_dag(project, pipeline)
    return dags


def _replay_dag(project: Project, pipeline: Pipeline) -> DAG:
    """Return the replay DAG; a broken one without the plugin, as Airflow would drop all DAGs of the file."""
    if not timetable_is_known():
        error = SpecError(
            "airflow.no-plugin",
            f"a replay of {pipeline.name} needs a timetable, which comes with Drawdown's Airflow plugin",
            where="the folder `plugins_folder` of Airflow's configuration",
            do="copy plugins/drawdown_plugin.py into it, and restart Airflow",
        )
        return broken_dag(replay_dag_id(pipeline.name), error)
    try:
        return replay_dag(project, pipeline)
    except SpecError as error:
        return broken_dag(replay_dag_id(pipeline.name), error)
    except Exception as cause:  # noqa: BLE001 - as for its drains
        return broken_dag(replay_dag_id(pipeline.name), _unexpected(pipeline.name, cause))


def _read(project: Project) -> tuple[Mapping[str, list[Pipeline]], dict[str, SpecError]]:
    """Return pipelines by the DAG they belong to, and the errors of those that cannot be read."""
    members: dict[str, list[Pipeline]] = defaultdict(list)
    errors: dict[str, SpecError] = {}
    for name, found in zip(pipeline_names(project), iter_pipelines(project), strict=True):
        error = found if isinstance(found, SpecError) else _for_tests_only(found)
        if error is not None:
            errors[_as_dag_id(name)] = error
        elif isinstance(found, Pipeline):
            members[_as_dag_id(found.group or found.name)].append(found)
    replays = {replay_dag_id(each.name) for each in chain.from_iterable(members.values()) if each.replay}
    # A broken folder must not replace a DAG that other pipelines need.
    taken = {*OWN, *replays, *members}
    broken: dict[str, SpecError] = {}
    for name, error in errors.items():
        while name in taken:
            name += "_"
        taken.add(name)
        broken[name] = error
    return members, broken


def _dags_of(project: Project, dag_id: str, pipelines: list[Pipeline]) -> dict[str, DAG]:
    """Return the DAG of these pipelines; of a group, without those of which no DAG can be made."""
    dag = _dag_or_broken(project, dag_id, pipelines)
    if len(pipelines) == 1 or BROKEN not in dag.task_ids:
        return {dag_id: dag}
    alone = {each.name: _dag_or_broken(project, each.name, [each]) for each in pipelines}
    broken = {name: each for name, each in alone.items() if BROKEN in each.task_ids and name != dag_id}
    others = [each for each in pipelines if each.name not in broken]
    if not broken or not others:
        return {dag_id: dag}
    return {**broken, dag_id: _dag_or_broken(project, dag_id, others)}


def _dag_or_broken(project: Project, dag_id: str, pipelines: list[Pipeline]) -> DAG:
    try:
        for pipeline in pipelines:
            if (error := _for_tests_only(pipeline)) is not None:
                raise error
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


def _for_tests_only(pipeline: Pipeline) -> SpecError | None:
    """Return an error for sources made for tests, even in DAGs that are only started by hand."""
    for at, why in pipeline.test_only.items():
        return SpecError(
            "spec.test-only",
            f"{pipeline.name} cannot be drained by Airflow ({'.'.join(at)}): {why}",
            where=f"include/pipelines/{pipeline.name}/pipeline.yaml",
            do=f"`drawdown run {pipeline.name}` on a developer's machine, or use tables, files or Kafka",
        )
    return None


def _as_dag_id(name: str) -> str:
    """Return the DAG id for a folder or group, whose name may hold characters that DAG ids cannot."""
    return re.sub(r"[^A-Za-z0-9_.\-]", "_", name)[:200]
