"""What has changed of clusters that are not known to be gone, for all targets of the project.

They are announced by their name in place of a pipeline's, and as the alert `cluster`, which no `when:`
leaves out: somebody pays for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from drawdown.fleet.started_clusters import RedCluster
from drawdown.metastore.records import Announcement

CLUSTER = "cluster"


def changes_of_clusters(
    red: Sequence[RedCluster], known: Iterable[Announcement], targets: Sequence[str], now: datetime
) -> list[Announcement]:
    """Return the announcements that are new, that are over, or that have come back."""
    said = {
        each.record.name: f"{each.sentence}: its machines may still be paid for: {each.do}" for each in red
    }
    before = {each.key: each for each in known if each.alert == CLUSTER}
    kept = []
    for name, sentence in said.items():
        for target in targets:
            told = before.get((name, CLUSTER, target))
            if told is None:
                kept.append(Announcement(name, CLUSTER, target, now, sentence))
            elif told.ended_at is not None:
                kept.append(replace(told, ended_at=None, sentence=sentence))
    over = [each for each in before.values() if each.pipeline not in said and each.ended_at is None]
    return [*kept, *(replace(each, ended_at=now) for each in over)]
