"""What a source may say about the names of its files: `order`, `names_late`, `identity`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from drawdown.sources.files.cleaned_files import cleans
from drawdown.values.globs import Glob, WrongPattern, expand
from drawdown.values.model import problem

if TYPE_CHECKING:
    from drawdown.spec import Source


_WILDCARD = re.compile(r"[\\*?\[\]{}]")


def is_one_folder(path: str) -> bool:
    """Whether a path has no wildcards."""
    return not any(mark in path for mark in "*?[]{}\\")


def one_file(path: str) -> str:
    """Return a pattern for Spark that matches this path alone: a name may contain wildcard characters."""
    return _WILDCARD.sub(r"\\\g<0>", path)


def check_names(source: Source) -> None:
    """Raise a PydanticCustomError for what cannot be held (docs/decisions/0035)."""
    if source.identity != "name":
        raise problem(
            "wrong-value",
            f"Spark reads a file once by its name, so identity: {source.identity} cannot be exactly-once:"
            " a batch that is repeated, and a replay, would find other rows under the name",
            "identity",
            do="land new content under a new name; `policy: {rewritten: fail}` stops at a rewritten file",
        )
    if source.arrivals is not None and not is_one_folder(source.path or ""):
        raise problem(
            "contradiction",
            "notifications stand for the listing of one folder, not of a pattern",
            "arrivals",
            do="name the folder in `path:`, and its files by the option pathGlobFilter",
        )
    try:
        Glob.parse(str(source.options.get("pathGlobFilter", "")))
    except WrongPattern as error:
        raise problem(
            "wrong-value", str(error), "options", "pathGlobFilter", do="write a pattern of names, without /"
        ) from None
    if source.order != "name":
        if "names_late" in source.model_fields_set:
            raise problem("no-effect", "only `order: name` has it", "names_late", do="remove the key")
        return
    if str(source.options.get("latestFirst", False)).lower() == "true":
        raise problem(
            "contradiction",
            "with latestFirst a file may be read before those with smaller names",
            "order",
            do="remove one of them",
        )
    if cleans(source.options):
        raise problem(
            "no-effect",
            "with cleanSource no files pile up that would be listed",
            "order",
            do="remove the key",
        )
    if len(expand(source.path or "")) > 1:
        raise problem(
            "contradiction",
            "files of several folders have no common order by name",
            "order",
            do="make each folder a source of its own",
        )
