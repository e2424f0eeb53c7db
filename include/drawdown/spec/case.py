"""case.yaml: what arrives before each run of a test case; the rows expected stand in files beside it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from drawdown.values.model import Name, SpecModel
from drawdown.values.paths import FolderFile

Arrivals = dict[Name, list[FolderFile]]


class CaseFile(SpecModel):
    """The keys of case.yaml.

    ``waves``: per run, source name to the files that arrive before it. ``static``: files that exist
    before the first run. ``schemas``: a .ddl file for a Delta source that no pipeline of the project writes.
    After wave N the output must hold exactly the rows of ``waveN.expected.csv`` (or ``.jsonl``).
    """

    description: Annotated[str, Field(max_length=4000)] = ""
    static: Arrivals = Field(default_factory=dict)
    schemas: dict[Name, FolderFile] = Field(default_factory=dict)
    waves: Annotated[list[Arrivals], Field(min_length=1, max_length=1000)]
