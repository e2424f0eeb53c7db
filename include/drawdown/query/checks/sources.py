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
                f"source {name} identifies files by name only: of several files with one name it reads the"
                " first",
                do="use it only where names are unique, such as with a UUID in them",
                about=name,
            )
        if given := [o for o in ("maxCachedFiles", "discardCachedInputRatio") if o in source.options]:
            yield PlanVerdict(
                "note",
                "source.cached-files",
                f"{' and '.join(given)} of source {name}: a drain lists the files once, when it starts;"
                " these options have an effect only in `drawdown watch`",
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
            f"source {name} has latestFirst and {limits[0]}: Spark ignores maxFileAge then, because valid"
            " old files might be skipped, and keeps every file it ever saw in memory",
            do="remove latestFirst, or the limit, if old files may be skipped",
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
