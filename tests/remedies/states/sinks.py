"""Sinks that are not as the metastore knows them."""

from __future__ import annotations

import shutil
from collections import Counter

from tests.remedies.ground import NAME, TABLE, Ground
from tests.remedies.registry import Made, rows, state


@state("sink.older-copy")
def older_copy(ground: Ground) -> Made:
    ground.drained()
    table, kept, newer = ground.sandbox.storage / TABLE, ground.root / "kept", ground.root / "newer"

    def older() -> None:
        ground.new()
        ground.land(1)
        ground.sandbox.run(NAME)
        shutil.copytree(table, kept)
        ground.land(2)
        ground.sandbox.run(NAME)

    ground.base("older", older)
    table.rename(newer)
    shutil.copytree(kept, table)

    def bring_back() -> None:
        shutil.rmtree(table)
        newer.rename(table)

    ground.land(3)
    return Made(
        ground.refused("sink.older-copy"),
        hands={"put the newer copy back": bring_back},
        wanted={"": Counter([1, 2, 3]), "accept": Counter([1, 3])},
    )


@state("sink.missing")
def missing(ground: Ground) -> Made:
    ground.drained()
    table, away = ground.sandbox.storage / TABLE, ground.root / "away"
    table.rename(away)
    ground.land(3)
    return Made(
        ground.refused("sink.missing"),
        hands={"backup": lambda: away.rename(table)},
        outside={"new pipeline folder": "another pipeline"},
        wanted=rows(1, 2, 3),
    )
