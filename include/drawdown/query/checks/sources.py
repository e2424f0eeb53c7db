"""Source options with surprising effects: options that disable others, and their effect on late rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from drawdown.plan_verdicts import PlanVerdict
from drawdown.query.checks.subject import Subject
from drawdown.spec import Source


def sources(subject: Subject) -> Iterator[PlanVerdict]:
    """Yield warnings and notes ``source.*`` about the streaming sources."""
    for name, source in subject.pipeline.streaming_sources.items():
        if _true(source.options, "latestFirst"):
            yield from _latest_first(name, source)
        if _true(source.options, "fileNameOnly"):
            yield PlanVerdict(
                "warning",
                "source.file-name-only",
                f"source {name} knows files by name only: once a name was seen, no file of it is read",
                do="use it only where names are unique, such as with a UUID in them",
                about=name,
            )
        if given := [o for o in ("maxCachedFiles", "discardCachedInputRatio") if o in source.options]:
            yield PlanVerdict(
                "note",
                "source.cached-files",
                f"{' and '.join(given)} of source {name}: a drain lists the files once, when it starts;"
                " there is something to cache, or to list again, only in `drawdown watch`",
                about=name,
            )
        if source.format == "python":
            yield PlanVerdict(
                "note",
                "source.reader-limit",
                f"a drain reads source {name} up to its end in one batch, whatever limit its reader says,"
                " unless the reader has SupportsTriggerAvailableNow",
                about=name,
            )


def _latest_first(name: str, source: Source) -> Iterator[PlanVerdict]:
    if limits := [o for o in ("maxFilesPerTrigger", "maxBytesPerTrigger") if o in source.options]:
        yield PlanVerdict(
            "warning",
            "source.max-age-ignored",
            f"source {name} has latestFirst and {limits[0]}: Spark ignores maxFileAge then, because old files"
            " that are valid might be passed over, and keeps every file it ever saw in memory",
            do="remove latestFirst, or the limit, where old files are to be passed over",
            about=name,
        )
        if source.watermark is not None:
            yield PlanVerdict(
                "warning",
                "source.latest-first-late",
                f"source {name} reads its newest files in its first batches: they move the watermark on"
                f" {source.watermark.column}, and the rows of older files come too late for it",
                do="remove latestFirst, or the limit, so that one batch reads them all",
                about=name,
            )


def _true(options: Mapping[str, object], name: str) -> bool:
    return str(options.get(name, False)).lower() == "true"
