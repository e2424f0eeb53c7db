"""Refuses to clean files that are not the source's own: the last look, at the files themselves.

Reading the specs compares patterns (spec/project_wide/source_folders.py), which do not show a link inside a
landing folder that leads to a table. Spark cleans the files of a batch when the next one is planned, also if
it is another run's and `cleanSource` is new. So the files of the last batch and those that wait are looked
at before the query starts, and those of each batch again before it writes.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from drawdown.errors import RefusedError
from drawdown.spec import Pipeline, Source
from drawdown.spec.loader import readable_pipelines
from drawdown.spec.project_wide.claims import cleans
from drawdown.spec.project_wide.places import (
    address_of,
    archive_of,
    landing_places,
    own_places,
    paths_of,
    sink_place,
)
from drawdown.storage import Storage
from drawdown.values.path_sets import PathSet, lies_in
from drawdown.workspace import Generation


def refuse_foreign_files(generation: Generation, name: str, paths: Iterable[str]) -> None:
    """Raise RefusedError ``source.not-its-own`` for a file that cleaning this source must not touch.

    Args:
        paths: files as Spark names them.
    """
    source = generation.pipeline.sources[name]
    if cleans(source):
        _Cleaning(generation, name, source).refuse(paths)


@dataclass(frozen=True)
class _Cleaning:
    """What a source may clean, with every link followed."""

    generation: Generation
    name: str
    source: Source

    def refuse(self, paths: Iterable[str]) -> None:
        if self.archive is not None and (what := self._met(self.archive)):
            raise self._refused(f"its archive {self.archive.text} lies at {what}")
        seen: dict[str, str] = {}
        for path in paths:
            folder = posixpath.dirname(path)
            if folder not in seen:
                seen[folder] = self._of_folder(path)
            what = seen[folder] or self._of_file(path)
            if what and self.storage.info(self.storage.relative(path)) is not None:
                raise self._refused(f"{path} {what}")

    def _of_folder(self, path: str) -> str:
        """Return why no file beside this one may be cleaned; empty if they may."""
        lexical = posixpath.dirname(self._absolute(path))
        real = self._real(lexical)
        landing = landing_places(self.generation.project, self.source)
        if not any(lies_in(lexical, folder) for folder in landing):
            return "is in no landing folder of include/project.yaml"
        if not any(lies_in(real, self._real(folder)) for folder in landing):
            return f"lies in {real}, in no landing folder of include/project.yaml"
        owner = next((what for place, what in self._places if lies_in(real, place)), "")
        return f"lies in {owner}" if owner else ""

    def _of_file(self, path: str) -> str:
        absolute = self._absolute(path)
        real = posixpath.join(self._real(posixpath.dirname(absolute)), posixpath.basename(absolute))
        owner = next((what for place, what in self._places if place == real), "")
        there = PathSet.one(real)
        owner = owner or next((what for paths, what in self._read if paths.meets(there)), "")
        return f"belongs to {owner}" if owner else ""

    def _met(self, archive: PathSet) -> str:
        real = PathSet.one(self._real(archive.text))
        taken = [(PathSet.one(place), what) for place, what in self._places]
        return next((what for paths, what in (*taken, *self._read) if paths.meets(real)), "")

    @cached_property
    def storage(self) -> Storage:
        return Storage.of_source(self.generation.project, self.source)

    @cached_property
    def archive(self) -> PathSet | None:
        return archive_of(self.generation.project, self.source)

    @cached_property
    def _real(self) -> Callable[[str], str]:
        return os.path.realpath if self.storage.is_local else str

    def _absolute(self, path: str) -> str:
        return f"{address_of(self.generation.project, self.source)}/{self.storage.relative(path)}"

    @cached_property
    def _places(self) -> list[tuple[str, str]]:
        project = self.generation.project
        places = [(place.path, f"{place.path} ({place.what})") for place in own_places(project)]
        for pipeline in self._pipelines:
            if pipeline.sink.path is not None:
                where = f"{pipeline.sink.path}, the sink of {pipeline.name}"
                places.append((sink_place(project, pipeline.sink.path), where))
        return [(self._real(place), what) for place, what in places]

    @cached_property
    def _read(self) -> list[tuple[PathSet, str]]:
        return list(self._of_others())

    def _of_others(self) -> Iterator[tuple[PathSet, str]]:
        project = self.generation.project
        for pipeline in self._pipelines:
            for name, source in pipeline.sources.items():
                if source.path is None or (pipeline.name, name) == (self.generation.pipeline.name, self.name):
                    continue
                said = f"source {name} of {pipeline.name}"
                paths = paths_of(project, source)
                yield replace(paths, fixed=self._real(paths.fixed)), said
                archive = archive_of(project, source) if cleans(source) else None
                if archive is not None:
                    yield PathSet.one(self._real(archive.text)), f"the archive of {said}"

    @cached_property
    def _pipelines(self) -> list[Pipeline]:
        own = self.generation.pipeline
        others = (each for each in readable_pipelines(self.generation.project) if each.name != own.name)
        return [own, *others]

    def _refused(self, what: str) -> RefusedError:
        name = self.generation.pipeline.name
        return RefusedError(
            "source.not-its-own",
            f"source {self.name} has `cleanSource: {self.source.options['cleanSource']}`, but {what}",
            where=f"pipeline {name}, source {self.name}",
            do="take the link or the file away, or remove cleanSource",
        )
