"""What has changed since targets were told: alerts that are new, and alerts that are over."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from drawdown.errors import SpecError
from drawdown.fleet.started_clusters import red_clusters
from drawdown.metastore.records import Announcement
from drawdown.observe.alerts.clusters import CLUSTER, changes_of_clusters
from drawdown.observe.alerts.conditions import alerts_now
from drawdown.observe.figures import Seen, look
from drawdown.spec import Pipeline, Project, iter_pipelines, pipeline_names
from drawdown.spec.alerts import Alert, Alerts
from drawdown.workspace import Workspace

Key = tuple[str, str, str]


@dataclass(frozen=True)
class Changes:
    """What is to be recorded before anybody is told: a target that is down is told by the next schedule.

    Attributes:
        kept: announcements that are new, or that ended or began again.
        forgotten: keys of those that nobody wants to hear of any more.
    """

    kept: list[Announcement] = field(default_factory=list)
    forgotten: list[Key] = field(default_factory=list)


def note_changes(workspace: Workspace) -> list[Announcement]:
    """Compare what is recorded of all pipelines with what targets know; record and return what is to tell.

    An alert that began and ended while its target was down is told once, as over.
    """
    project, store = workspace.project, workspace.metastore.announcements
    settings = _settings(project)
    seen = [each for each in look(workspace.metastore) if each.pipeline in settings]
    known = {each.key: each for each in store.read()}
    found = _changes(
        seen, known, lambda name: (settings[name], settings[name].targets(project.alert_targets))
    )
    targets = project.alerts.targets(project.alert_targets)
    red, now = red_clusters(workspace.metastore), workspace.metastore.now()
    store.keep([*found.kept, *changes_of_clusters(red, known.values(), targets, now)])
    store.forget(found.forgotten)
    return [each for each in store.read() if each.told_at is None or each.ended_at is not None]


def _settings(project: Project) -> dict[str, Alerts]:
    """Return the settings by pipeline; of a spec that cannot be read, those of the project."""
    names = pipeline_names(project)
    specs: Iterable[Pipeline | SpecError] = iter_pipelines(project)
    return {
        name: project.alerts_of(spec.alerts) if isinstance(spec, Pipeline) else project.alerts
        for name, spec in zip(names, specs, strict=True)
    }


def _changes(
    all_seen: Iterable[Seen],
    known: Mapping[Key, Announcement],
    wanted: Callable[[str], tuple[Alerts, tuple[str, ...]]],
) -> Changes:
    changes, wanted_keys = Changes(), set[Key]()
    for seen in all_seen:
        settings, targets = wanted(seen.pipeline)
        wanted_keys |= {(seen.pipeline, alert, target) for alert in settings.when for target in targets}
        for alert, sentence in alerts_now(seen, settings).items():
            for target in targets:
                changed = _changed(seen, alert, sentence, target, known.get((seen.pipeline, alert, target)))
                changes.kept.extend(changed)
    changes.forgotten.extend(key for key in known if key not in wanted_keys and key[1] != CLUSTER)
    return changes


def _changed(
    seen: Seen, alert: Alert, sentence: str | None, target: str, before: Announcement | None
) -> list[Announcement]:
    if sentence is not None and before is None:
        return [Announcement(seen.pipeline, alert, target, seen.now, sentence)]
    if sentence is not None and before is not None and before.ended_at is not None:
        # It came back before the target heard that it was over: to the target nothing has changed.
        return [replace(before, ended_at=None, sentence=sentence)]
    if sentence is None and before is not None and before.ended_at is None:
        return [replace(before, ended_at=seen.now)]
    return []
