"""Finds sources that reach what is not theirs: to read it, to delete it, or to move files into it.

Patterns are compared as sets of paths, not by what exists: a table can come later. The files themselves are
compared again before they are cleaned (sources/files/cleaned_places.py).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar

from drawdown.errors import SpecError
from drawdown.spec.pipeline import Pipeline
from drawdown.spec.project import Project
from drawdown.spec.project_wide.claims import cleaning_claim, cleans, reading_claim, sink_claim
from drawdown.spec.project_wide.collisions import Collision, Flaw, Side, spec_file
from drawdown.spec.project_wide.places import (
    address_of,
    archive_of,
    landing_places,
    own_places,
    paths_of,
    sink_place,
)
from drawdown.spec.source import Source
from drawdown.values.path_sets import PathSet, lies_in
from drawdown.values.paths import fixed_part


@dataclass(frozen=True)
class _SourceFolder:
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


_Owner = TypeVar("_Owner", Pipeline, _SourceFolder)


class _Nearby(Generic[_Owner]):
    """Sets of paths, each with what it belongs to; finds those that can meet another without trying all."""

    def __init__(self, owned: Iterable[tuple[PathSet, _Owner]]) -> None:
        self._by_fixed: dict[str, list[tuple[PathSet, _Owner]]] = defaultdict(list)
        for paths, owner in owned:
            self._by_fixed[paths.fixed].append((paths, owner))
        # With a slash behind each, what lies in a folder comes directly behind it.
        self._fixed = sorted(f"{fixed}/" for fixed in self._by_fixed)

    def met_by(self, paths: PathSet) -> Iterator[_Owner]:
        folder = f"{paths.fixed}/"
        names = folder.split("/")
        near = ["/".join(names[:depth]) for depth in range(1, len(names) - 1)]
        for fixed in self._fixed[bisect_left(self._fixed, folder) :]:
            if not fixed.startswith(folder):
                break
            near.append(fixed[:-1])
        for fixed in near:
            yield from (owner for there, owner in self._by_fixed.get(fixed, ()) if there.meets(paths))


def source_folders(project: Project, pipelines: Sequence[Pipeline]) -> Iterator[Collision | Flaw]:
    """Yield what is wrong with the folders of sources."""
    read = [
        _SourceFolder(project, pipeline, name, source)
        for pipeline in pipelines
        for name, source in pipeline.sources.items()
        if source.path is not None
    ]
    yield from _own(project, read)
    yield from _fed(project, read, pipelines)
    cleaning = [each for each in read if cleans(each.source)]
    if not cleaning:
        return
    sinks = _Nearby(
        (PathSet.one(sink_place(project, each.sink.path)), each)
        for each in pipelines
        if each.sink.path is not None
    )
    readers = _Nearby((each.paths, each) for each in read)
    for each in cleaning:
        yield from _sinks(each, sinks)
        yield from _readers(each, readers)
        yield from _landing(each)


def _own(project: Project, read: Sequence[_SourceFolder]) -> Iterator[Flaw]:
    places = own_places(project)
    below = {
        root: [(each, PathSet.one(each.path)) for each in places if lies_in(each.path, root)]
        for root in {address_of(project, each.source) for each in read}
    }
    for each in read:
        for place, there in below[address_of(project, each.source)]:
            if not place.readable and each.paths.meets(there):
                what = f"{each.said} would read {each.source.path}, where {place.what} can be"
                yield _flaw(each, "spec.reserved-path", what, "read from another folder")
            elif cleans(each.source):
                for reached, does in each.reached:
                    if reached.meets(there):
                        what = f"{each.said} {does} {place.path}: {place.what}"
                        yield _flaw(each, "spec.cleaned-place", what, _OTHERS)


def _fed(
    project: Project, read: Sequence[_SourceFolder], pipelines: Sequence[Pipeline]
) -> Iterator[Collision]:
    """A sink inside a folder that another reads feeds it rows, or stops it by other columns and partitions.

    A pattern of the reader that matches the sink asks for it, and so does the sink's very path.
    """
    folders = _Nearby((each.paths, each) for each in read if each.source.is_files and each.paths.is_plain)
    for writer in pipelines:
        if writer.sink.path is None:
            continue
        place = sink_place(project, writer.sink.path)
        for each in folders.met_by(PathSet.one(place)):
            folder = each.paths.fixed
            if each.pipeline.name != writer.name and place != folder and lies_in(place, folder):
                yield Collision(
                    "spec.sink-in-source",
                    (
                        Side((each.pipeline.name,), reading_claim(each.source)),
                        Side((writer.name,), sink_claim(writer), yields=True),
                    ),
                    f"{writer.name} writes into {writer.sink.path}, and {each.said} reads all of"
                    f" {each.source.path}",
                    f"give it a sink path outside of that folder; or let {each.pipeline.name} read a pattern"
                    f" ({each.source.path}/*), if it is to have these rows",
                    of_newcomers=True,
                )


_OTHERS = "name folders in which nothing of another can ever be, or remove cleanSource"


def _sinks(each: _SourceFolder, sinks: _Nearby[Pipeline]) -> Iterator[Collision | Flaw]:
    for reached, does in each.reached:
        for writer in sinks.met_by(reached):
            what = f"{each.said} {does} {writer.sink.path}, the sink of {writer.name}"
            side = Side((writer.name,), sink_claim(writer))
            yield _between(each, "spec.cleaned-place", side, what, _OTHERS)


def _readers(each: _SourceFolder, readers: _Nearby[_SourceFolder]) -> Iterator[Collision | Flaw]:
    """Spark's guide: a source path must not be used by several sources when its files are cleaned."""
    for reached, _ in each.reached:
        for other in readers.met_by(reached):
            if other is each:
                continue
            if reached is each.paths:
                does = "moves or deletes the files it has read"
                reads = f"{other.said} reads {other.source.path} too"
                do = "give each source its own folder, or remove cleanSource"
            else:
                does = f"moves files into {each.source.options['sourceArchiveDir']}"
                reads = f"{other.said} reads {other.source.path}"
                do = "give the archive a folder that no source reads"
            side = Side((other.pipeline.name,), reading_claim(other.source))
            yield _between(each, "spec.cleaned-source", side, f"{each.said} {does}, and {reads}", do)


def _landing(each: _SourceFolder) -> Iterator[Flaw]:
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


def _between(each: _SourceFolder, id: str, other: Side, what: str, do: str) -> Collision | Flaw:
    if other.names == each.cleaning.names:
        return _flaw(each, id, what, do)
    return Collision(id, (each.cleaning, other), what, do)


def _flaw(each: _SourceFolder, id: str, what: str, do: str) -> Flaw:
    name = each.pipeline.name
    return Flaw(name, SpecError(id, what, where=spec_file(name), do=do))
