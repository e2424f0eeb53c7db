"""Which pipelines of an application run alone, behind the others: those whose last run died with the JVM.

The others are done, published and recorded before the first of them begins. Of several, the one with the
fewest deaths in a row goes first: each that is innocent ends well, and only the one that ends the JVM again
is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from drawdown.metastore import Metastore
from drawdown.plan.deaths import deaths
from drawdown.spec import Pipeline


def in_turns(metastore: Metastore, pipelines: Sequence[Pipeline]) -> Iterator[list[Pipeline]]:
    """Yield pipelines that run together: first those that nothing is known against, then each other alone."""
    if len(pipelines) == 1:
        yield list(pipelines)
        return
    known = {pipeline.name: deaths(metastore, pipeline.name) for pipeline in pipelines}
    yield [pipeline for pipeline in pipelines if not known[pipeline.name]]
    for pipeline in sorted(pipelines, key=lambda each: known[each.name]):
        if known[pipeline.name]:
            yield [pipeline]


def untried(metastore: Metastore, names: Iterable[str]) -> list[str]:
    """Return the pipelines that died together with others and have not run alone since.

    Another application is worth starting for them in the same try: each run alone adds a death or clears it.
    """
    names = list(names)
    return [name for name in names if deaths(metastore, name) == 1] if len(names) > 1 else []
