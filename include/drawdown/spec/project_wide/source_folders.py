"""Finds sources that reach what is not theirs: to read it, to delete it, or to move files into it.

Patterns are compared as sets of paths, not by what exists: a table can come later. The files themselves are
compared again before they are cleaned (sources/files/cleaned_places.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from drawdown.errors import SpecError
from drawdown.spec.pipeline import Pipeline
from drawdown.spec.project import Project
from drawdown.spec.project_wide.claims import cleaning_claim, cleans, reading_claim, sink_claim
from drawdown.spec.project_wide.collisions import Collision, Flaw, Side, spec_file
from drawdown.spec.project_wide.places import (
    archive_of,
    landing_places,
    own_places,
    paths_of,
    sink_place,
)
from drawdown.spec.source import Source
from drawdown.values.path_sets import PathSet
from drawdown.values.paths import fixed_part


@dataclass(frozen=True)
class _Read:
    """One source of files, tables or anything else that has a path."""

    project: Project
    pipeline: Pipeline
    name: str
    source: Source

    @cached_property
    def paths(self) -> PathSet:
        return paths_of(self.project, self.source)

    @cached_property
    def archive(self) -> PathSet | None:
        return archive_of(self.project, self.source)

    @property
    def reached(self) -> Iterator[tuple[PathSet, str]]:
        """Yield what it cleans, each with what it does there."""
        yield self.paths, "would move or delete files of"
        if self.archive is not None:
            yield self.archive, "would put its archive into"

    @property
    def said(self) -> str:
        return f"source {self.name} of {self.pipeline.name}"

    @property
    def cleaning(self) -> Side:
        return Side((self.pipeline.name,), cleaning_claim(self.source), yields=True)


def source_folders(project: Project, pipelines: Sequence[Pipeline]) -> Iterator[Collision | Flaw]:
    """Yield what is wrong with the folders of sources."""
    read = [
        _Read(project, pipeline, name, source)
        for pipeline in pipelines
        for name, source in pipeline.sources.items()
        if source.path is not None
    ]
    cleaning = [each for each in read if cleans(each.source)]
    yield from _own(project, read)
    for each in cleaning:
        yield from _sinks(each, pipelines)
        yield from _readers(each, read)
        yield from _landing(each)


def _own(project: Project, read: Sequence[_Read]) -> Iterator[Flaw]:
    places = [(place, PathSet.one(place.path)) for place in own_places(project)]
    for each in read:
        for place, there in places:
            if not place.readable and each.paths.meets(there):
                what = f"{each.said} would read {each.source.path}, where {place.what} can be"
                yield _flaw(each, "spec.reserved-path", what, "read from another folder")
            elif cleans(each.source):
                for reached, does in each.reached:
                    if reached.meets(there):
                        what = f"{each.said} {does} {place.path}: {place.what}"
                        yield _flaw(each, "spec.cleaned-place", what, _OTHERS)


_OTHERS = "name folders in which nothing of another can ever be, or remove cleanSource"


def _sinks(each: _Read, pipelines: Sequence[Pipeline]) -> Iterator[Collision | Flaw]:
    for writer in pipelines:
        if writer.sink.path is None:
            continue
        there = PathSet.one(sink_place(each.project, writer.sink.path))
        for reached, does in each.reached:
            if reached.meets(there):
                what = f"{each.said} {does} {writer.sink.path}, the sink of {writer.name}"
                yield _between(
                    each, "spec.cleaned-place", Side((writer.name,), sink_claim(writer)), what, _OTHERS
                )


def _readers(each: _Read, read: Sequence[_Read]) -> Iterator[Collision | Flaw]:
    """Spark's guide: a source path must not be used by several sources when its files are cleaned."""
    for other in read:
        if other is each:
            continue
        side = Side((other.pipeline.name,), reading_claim(other.source))
        if each.paths.meets(other.paths):
            what = (
                f"{each.said} moves or deletes the files it has read, and {other.said} reads"
                f" {other.source.path} too"
            )
            yield _between(
                each,
                "spec.cleaned-source",
                side,
                what,
                "give each source its own folder, or remove cleanSource",
            )
        if each.archive is not None and each.archive.meets(other.paths):
            what = (
                f"{each.said} moves files into {each.source.options['sourceArchiveDir']}, and"
                f" {other.said} reads {other.source.path}"
            )
            yield _between(
                each, "spec.cleaned-source", side, what, "give the archive a folder that no source reads"
            )


def _landing(each: _Read) -> Iterator[Flaw]:
    if each.paths.is_within(landing_places(each.project, each.source)):
        return
    landing = ", ".join(each.project.landing)
    folder = fixed_part(str(each.source.path))
    line = f"landing: [{', '.join(filter(None, (landing, folder)))}]"
    yield _flaw(
        each,
        "spec.not-landing",
        f"{each.said} has `cleanSource: {each.source.options['cleanSource']}`, but not every path of"
        f" {each.source.path} is in a landing folder of include/project.yaml ({landing or 'it names none'})",
        f"add `{line}` to include/project.yaml, or remove cleanSource"
        if folder
        else "begin the path with a folder of `landing:` in include/project.yaml, or remove cleanSource",
    )


def _between(each: _Read, id: str, other: Side, what: str, do: str) -> Collision | Flaw:
    if other.names == each.cleaning.names:
        return _flaw(each, id, what, do)
    return Collision(id, (each.cleaning, other), what, do)


def _flaw(each: _Read, id: str, what: str, do: str) -> Flaw:
    name = each.pipeline.name
    return Flaw(name, SpecError(id, what, where=spec_file(name), do=do))
