"""Where something stands in a pipeline's folder: ``file:line``, as the loader's errors say it."""

from __future__ import annotations

from dataclasses import dataclass, field

from drawdown.errors import SpecError
from drawdown.spec import Pipeline
from drawdown.spec.pipeline import NEXT
from drawdown.spec.reading.yaml_source import Document, KeyPath, parse, read_text

QUALITY = "quality.yaml"


@dataclass
class Places:
    """Of one pipeline. Files are read again when the first of their lines is asked for."""

    pipeline: Pipeline
    _documents: dict[str, Document] = field(default_factory=dict)

    @property
    def folder(self) -> str:
        """The folder as errors name it."""
        shown = f"include/pipelines/{self.pipeline.name}"
        return f"{shown}/{NEXT}" if self.pipeline.is_next else shown

    def key(self, file: str, *path: str | int) -> str:
        """The line of a key in a YAML file; the file alone when it has gone since it was read."""
        try:
            return self._document(file).where(path)
        except SpecError:
            return f"{self.folder}/{file}"

    def line(self, file: str, line: int) -> str:
        """A line of any other file."""
        return f"{self.folder}/{file}:{line}"

    def _document(self, file: str) -> Document:
        if file not in self._documents:
            shown = f"{self.folder}/{file}"
            self._documents[file] = parse(read_text(self.pipeline.folder / file, shown), shown)
        return self._documents[file]

    def schema(self, at: KeyPath, file: str | None, line: int) -> str:
        """A line of a schema, which has a file of its own or stands in pipeline.yaml."""
        return self.key("pipeline.yaml", *at, "schema") if file is None else self.line(file, line)
