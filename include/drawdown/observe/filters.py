"""By what the fleet page and the graph choose among pipelines, and the values that they offer."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, fields

from drawdown.observe.figures import Glance


@dataclass(frozen=True)
class Filter:
    """What is looked for; an empty value takes all. ``text`` is a part of the name."""

    state: str = ""
    group: str = ""
    owner: str = ""
    tag: str = ""
    text: str = ""

    def takes(self, seen: Glance) -> bool:
        figures = seen.figures
        return (
            self.state in ("", seen.finding.state)
            and self.group in ("", figures.group or "")
            and self.owner in ("", figures.owner)
            and (not self.tag or self.tag in figures.tags)
            and self.text.lower() in figures.pipeline.lower()
        )

    @property
    def given(self) -> dict[str, str]:
        """Return the values that are not empty, by name."""
        return {f.name: value for f in fields(self) if (value := getattr(self, f.name))}


@dataclass(frozen=True)
class Around(Filter):
    """Also a pipeline: what feeds it, and what it feeds."""

    around: str = ""


@dataclass
class Choices:
    """The groups, owners and tags of the pipelines that somebody may see."""

    _found: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def add(self, seen: Glance) -> None:
        figures = seen.figures
        self._found["group"].add(figures.group or "")
        self._found["owner"].add(figures.owner)
        self._found["tag"].update(figures.tags)

    @property
    def offered(self) -> dict[str, list[str]]:
        """Return the values by the name of the filter, sorted."""
        return {name: sorted(values - {""}) for name, values in self._found.items()}
