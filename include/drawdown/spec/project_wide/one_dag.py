"""Finds pipelines that cannot share a DAG: settings that differ in a group, names of two DAGs, circles."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from drawdown.spec.pipeline import Pipeline
from drawdown.spec.project_wide.claims import (
    GROUP_SETTINGS,
    dag_claim,
    order_claim,
    setting_claim,
    setting_text,
)
from drawdown.spec.project_wide.collisions import Collision, Side
from drawdown.spec.project_wide.order import upstreams


def one_dag(pipelines: Sequence[Pipeline]) -> Iterator[Collision]:
    """Yield the collisions of pipelines with their groups, and of pipelines with the names of groups."""
    groups: dict[str, list[Pipeline]] = defaultdict(list)
    for pipeline in pipelines:
        if pipeline.group:
            groups[pipeline.group].append(pipeline)
    for group, members in groups.items():
        for key in GROUP_SETTINGS:
            yield from _settings(group, members, key)
        yield from _circles(group, members)
    for pipeline in pipelines:
        if pipeline.group is None and pipeline.name in groups:
            members = groups[pipeline.name]
            yield Collision(
                "spec.group-name",
                (
                    Side((pipeline.name,), dag_claim(pipeline)),
                    Side(tuple(each.name for each in members), dag_claim(members[0])),
                ),
                f"a pipeline and a group are both named {pipeline.name!r}, and each is a DAG"
                f" (in the group: {', '.join(each.name for each in members)})",
                "rename the pipeline, or the group",
            )


def _settings(group: str, members: Sequence[Pipeline], key: str) -> Iterator[Collision]:
    by_value: dict[str, list[Pipeline]] = defaultdict(list)
    for member in members:
        by_value[setting_text(member, key)].append(member)
    if len(by_value) > 1:
        said = "; ".join(f"{value} in {_names(each)}" for value, each in by_value.items())
        yield Collision(
            f"spec.group-{key}",
            tuple(
                Side(tuple(one.name for one in each), setting_claim(each[0], key))
                for each in by_value.values()
            ),
            f"group {group!r} is one DAG and one Spark application, but `{key}:` differs: {said}",
            f"give it the same `{key}:` as the others, or another group",
        )


def _names(pipelines: Sequence[Pipeline]) -> str:
    return ", ".join(each.name for each in pipelines)


def _circles(group: str, members: Sequence[Pipeline]) -> Iterator[Collision]:
    before = {each.name: set(upstreams(each, members)) for each in members}
    reached = {name: _reached(name, before) for name in before}
    left = {name for name in before if name in reached[name]}
    for first in members:
        if first.name not in left:
            continue
        circle = [
            each for each in members if each.name in reached[first.name] and first.name in reached[each.name]
        ]
        left -= {each.name for each in circle}
        yield Collision(
            "group.cycle",
            tuple(Side((each.name,), order_claim(each)) for each in circle),
            f"these pipelines of group {group!r} wait for each other: {_names(circle)}",
            "let it read something else, or give it another group",
            together=True,
        )


def _reached(name: str, before: Mapping[str, set[str]]) -> set[str]:
    found, left = set[str](), list(before[name])
    while left:
        at = left.pop()
        if at not in found:
            found.add(at)
            left += before[at]
    return found
