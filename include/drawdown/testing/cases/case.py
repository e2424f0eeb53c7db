"""case.yaml: what arrives before each run. The expected rows are in files beside it.

After wave N the output must hold exactly the rows of ``waveN.expected.csv`` (or ``.jsonl``), and the
quarantine those of the newest of ``wave1.quarantine`` to ``waveN.quarantine``, or none without these files.
Only the columns that a file names are compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from drawdown.errors import SpecError
from drawdown.spec import Pipeline
from drawdown.spec.case import CaseFile
from drawdown.spec.reading.folder_files import FolderFiles
from drawdown.spec.reading.validation import Problem, spec_error, validate
from drawdown.spec.reading.yaml_source import Document, parse
from drawdown.values.nearest import did_you_mean


@dataclass(frozen=True)
class Case:
    """One folder below a pipeline's tests/, loaded and checked: every file it names exists."""

    pipeline: Pipeline
    folder: Path
    spec: CaseFile

    @property
    def name(self) -> str:
        """Return the folder's name."""
        return self.folder.name

    def __str__(self) -> str:
        return f"{self.pipeline.name}/{self.name}"

    def files(self, arrivals: Mapping[str, list[str]], source: str) -> list[Path]:
        """Return the input files of one source."""
        return [self.folder / name for name in arrivals.get(source, [])]

    def schema_ddl(self, source: str) -> str | None:
        """Return the text of the schema that the case declares for a source."""
        name = self.spec.schemas.get(source)
        return None if name is None else (self.folder / name).read_text().strip()

    def expected(self, wave: int, what: Literal["expected", "quarantine"]) -> Path | None:
        """Return the file with the rows of a table after a wave (from 1); None when there is none."""
        for suffix in ("csv", "jsonl"):
            path = self.folder / f"wave{wave}.{what}.{suffix}"
            if path.is_file():
                return path
        return None

    def expected_quarantine(self, wave: int) -> Path | None:
        """Return the newest file up to a wave: a wave that rejects nothing new needs none."""
        found = (self.expected(earlier, "quarantine") for earlier in range(wave, 0, -1))
        return next((path for path in found if path), None)


def case_names(pipeline: Pipeline) -> list[str]:
    """Return the names of a pipeline's cases, in alphabetical order."""
    tests = pipeline.folder / "tests"
    return sorted(path.name for path in tests.iterdir() if path.is_dir()) if tests.is_dir() else []


def load_cases(pipeline: Pipeline, only: str | None = None) -> list[Case]:
    """Return the cases of a pipeline, sorted by name, or only the named one.

    Raises:
        SpecError: case.yaml is wrong (file:line), or names a missing file or source;
            ``test.none``, ``test.no-case``.
    """
    names = case_names(pipeline)
    shown = f"include/pipelines/{pipeline.name}/tests"
    if not names:
        raise SpecError(
            "test.none",
            f"{pipeline.name} has no test",
            where=shown,
            do="add tests/first/case.yaml; `drawdown init NAME` shows one",
        )
    if only is not None and only not in names:
        raise SpecError(
            "test.no-case",
            f"{pipeline.name} has no case {only!r}; {did_you_mean(only, names)}",
            where=shown,
            do="correct the name",
        )
    return [
        _load(pipeline, pipeline.folder / "tests" / name, f"{shown}/{name}")
        for name in names
        if only in (None, name)
    ]


def _load(pipeline: Pipeline, folder: Path, shown: str) -> Case:
    document = parse(FolderFiles(folder, shown).read("case.yaml"), f"{shown}/case.yaml")
    case = Case(pipeline, folder, validate(CaseFile, document))
    if problems := [*_wrong_sources(case), *_missing_files(case)]:
        raise spec_error(document, problems)
    _require_expectations(case, document)
    return case


def _wrong_sources(case: Case) -> Iterator[Problem]:
    pipeline, spec = case.pipeline, case.spec
    places: list[tuple[tuple[str | int, ...], Mapping[str, object], Mapping[str, object]]] = [
        (("static",), spec.static, pipeline.static_sources),
        (("schemas",), spec.schemas, pipeline.sources),
        *((("waves", i), wave, pipeline.streaming_sources) for i, wave in enumerate(spec.waves)),
    ]
    for path, given, known in places:
        for name in given:
            if name not in known:
                kind = "static source" if path == ("static",) else "source"
                what = f"{pipeline.name} has no such {kind}; {did_you_mean(name, known)}"
                yield Problem("test.unknown-source", what, (*path, name), "correct the name")


def _missing_files(case: Case) -> Iterator[Problem]:
    spec, inside = case.spec, case.folder.resolve()
    named: list[tuple[tuple[str | int, ...], str]] = [
        (("schemas", source), name) for source, name in spec.schemas.items()
    ]
    places: list[tuple[tuple[str | int, ...], Mapping[str, list[str]]]] = [
        (("static",), spec.static),
        *((("waves", i), wave) for i, wave in enumerate(spec.waves)),
    ]
    for place, arrivals in places:
        for source, names in arrivals.items():
            named += [((*place, source, i), name) for i, name in enumerate(names)]
    for path, name in named:
        real = (case.folder / name).resolve()
        if not (real.is_file() and real.is_relative_to(inside)):
            yield Problem("test.no-file", f"there is no file {name} in the case's folder", path, "add it")


def _require_expectations(case: Case, document: Document) -> None:
    for wave in range(1, len(case.spec.waves) + 1):
        if case.expected(wave, "expected") is None:
            raise SpecError(
                "test.nothing-expected",
                f"there is no wave{wave}.expected.csv or wave{wave}.expected.jsonl beside the case",
                where=document.where(("waves", wave - 1)),
                do="write the rows that the output must hold after this wave; only the names of "
                "columns if it must be empty",
            )
