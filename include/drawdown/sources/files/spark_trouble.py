"""Find unexpected files at the sources of a pipeline before the query starts.

By the source's policy, each finding is an error, or a warning of the plan and a notice of the run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from pyspark.sql.types import StructType

from drawdown.checkpoint import plain_path
from drawdown.errors import DrawdownError, RefusedError
from drawdown.metastore.records import FileMark
from drawdown.plan_verdicts import PlanVerdict
from drawdown.sources.committed_offsets import CommittedOffsets, SourceProgress
from drawdown.sources.files.cleaned_places import refuse_foreign_files
from drawdown.sources.files.new_files import FileArrivals, arrivals
from drawdown.sources.files.notified.arrived import ArrivedFiles, notified
from drawdown.sources.files.notified.listing import SourceListing
from drawdown.sources.files.oversized import oversized
from drawdown.sources.files.schema_drift import Drift, drift_of
from drawdown.sources.files.set_aside import left_out, read_set_aside
from drawdown.sources.read_log import ReadLog
from drawdown.spec import Pipeline, Source
from drawdown.spec.project_wide.claims import cleans
from drawdown.storage import FileInfo, Storage
from drawdown.values.commands import set_aside_file
from drawdown.workspace import Generation

_SHOWN = 3


@dataclass
class FileTrouble:
    """What was found at each source.

    Attributes:
        verdicts: the warnings with which a run continues.
        changed: size and time that rewritten files have now, by path: after a run has reported them, the next
            run compares with these.
        aside: paths of files whose rows go to the quarantine.
        unread: paths of files that are set aside as a whole: Spark does not open them.
        beyond: those of them that this plan found, for a run to keep.
        columns: the schema's columns and their types, for formats whose files name their columns.
        listed_from: the name behind which the source's files were listed.
        arrived: what notifications say, of sources that have any.
        looked: paths of files that were measured, and whose columns were compared with the schema.
        refusals: the errors that stop a run.
    """

    verdicts: list[PlanVerdict] = field(default_factory=list)
    changed: dict[str, dict[str, FileMark]] = field(default_factory=dict)
    aside: dict[str, list[str]] = field(default_factory=dict)
    unread: dict[str, list[str]] = field(default_factory=dict)
    beyond: dict[str, list[tuple[FileInfo, str]]] = field(default_factory=dict)
    columns: dict[str, dict[str, str]] = field(default_factory=dict)
    listed_from: dict[str, str] = field(default_factory=dict)
    arrived: dict[str, ArrivedFiles] = field(default_factory=dict)
    looked: dict[str, set[str]] = field(default_factory=dict)
    refusals: list[DrawdownError] = field(default_factory=list)


@dataclass(frozen=True)
class _Case:
    """One kind of finding at one source."""

    id: str
    files: Sequence[FileInfo]
    what: str
    do: str
    refused: bool


def find_file_trouble(
    generation: Generation,
    schema_of: Callable[[str], StructType | None],
    by_notifications: bool = True,
    thorough: bool = False,
) -> FileTrouble:
    """List each file source once, and compare it with what is known of its files.

    Args:
        schema_of: returns the columns of a source; None while they are unknown.
        by_notifications: whether notifications may stand for a listing, as in a run that lists only once.
        thorough: look for what is beyond the limits in files that seem ordinary, too.

    Raises:
        RefusedError, SourceError: a listing or the checkpoint cannot be read.
    """
    found = FileTrouble()
    pipeline = generation.pipeline
    past = CommittedOffsets.read(generation.storage, generation.checkpoint)
    for name, source in pipeline.streaming_sources.items():
        if not source.is_files:
            continue
        storage = Storage.of_source(generation.project, source)
        try:
            at = SourceProgress(generation.workspace, pipeline, name, past)
            told = notified(at) if by_notifications else None
            log = past.read_log(name)
            marks_of = partial(past.marks, generation.metastore, name)
            files = arrivals(SourceListing(storage, source, told), log, marks_of, time.time() * 1_000)
        except FileNotFoundError:
            continue
        _refuse_to_clean(generation, name, files, log)
        found.listed_from[name] = files.after
        if told is not None:
            found.arrived[name] = ArrivedFiles.of(told, files.new, log)
            found.verdicts += _of_notifications(name, found.arrived[name])
        found.changed[name] = {
            plain_path(info.path): FileMark(info.size, info.mtime_ms) for info in files.rewritten
        }
        found.looked[name] = {plain_path(info.path) for info in files.new}
        cases = [*_of_times(source, files), *_of_sizes(found, generation, name, files, thorough)]
        schema = schema_of(name) if source.shows_columns else None
        if schema is not None:
            columns = {column.name: column.dataType.simpleString() for column in schema.fields}
            found.columns[name] = columns
            unread = set(found.unread.get(name, ()))
            readable = replace(files, new=[each for each in files.new if plain_path(each.path) not in unread])
            cases += _of_columns(storage, source, readable, columns, found.aside.setdefault(name, []))
        for case in cases:
            _tell(found, pipeline, name, case)
    return found


def _refuse_to_clean(generation: Generation, name: str, files: FileArrivals, log: ReadLog) -> None:
    """Look at what Spark will clean: the files of the last batch, and those of this run."""
    if not cleans(generation.pipeline.sources[name]):
        return
    if not log.files:
        log.read_more()
    last = max((file.log_offset for file in log.files), default=-1)
    before = [file.path for file in log.files if file.log_offset == last]
    refuse_foreign_files(generation, name, [*before, *(plain_path(info.path) for info in files.new)])


def _of_notifications(name: str, arrived: ArrivedFiles) -> Iterator[PlanVerdict]:
    if arrived.silent:
        yield PlanVerdict(
            "warning",
            "source.notifications",
            f"source {name}: {arrived.silent}, so its files are listed",
            do="start the broker, or correct `arrivals:`; listings cost requests, and lose nothing",
            about=name,
        )


def _of_times(source: Source, files: FileArrivals) -> Iterator[_Case]:
    policy = source.policy
    if files.rewritten:
        yield _Case(
            "source.rewritten",
            files.rewritten,
            "changed after it was read, and Spark reads no file twice: its new content is in no output",
            "land the new content under a new name; `policy: {rewritten: warn}` continues and reports it"
            " once",
            policy.rewritten == "fail",
        )
    if files.replaced:
        yield _Case(
            "source.rewritten",
            files.replaced,
            "changed since a batch read it, and will be read again: the batch would have other rows",
            "bring the old file back; `policy: {rewritten: warn}` reads it as it is now",
            policy.rewritten != "warn",
        )
    if files.from_future:
        yield _Case(
            "source.future-mtime",
            files.from_future,
            "was modified in the future: once it is read, Spark passes over files that are older than it by"
            " maxFileAge",
            "`touch` it, or move it away; `policy: {future_mtime: warn}` reads it",
            policy.future_mtime == "fail",
        )
    if files.too_old:
        yield _Case(
            "source.too-old",
            files.too_old,
            "is older than the newest file ever read by maxFileAge, and is not read",
            "raise `maxFileAge` in the options of the source: the next run reads it; or `touch` it",
            policy.too_old == "fail",
        )


def _of_sizes(
    found: FileTrouble, generation: Generation, name: str, files: FileArrivals, thorough: bool
) -> Iterator[_Case]:
    """Find files that are set aside, and set those aside that are beyond the source's limits."""
    pipeline, source = generation.pipeline, generation.pipeline.sources[name]
    storage = Storage.of_source(generation.project, source)
    kept = read_set_aside(generation.storage, pipeline.name, name)
    known = left_out(kept, storage, files.new)
    if gone := [storage.path_of_file(path) for path, file in kept.items() if file.is_gone]:
        found.unread.setdefault(name, []).extend(map(plain_path, gone))
    by_reason: dict[str, list[FileInfo]] = {}
    for info in files.new:
        if plain_path(info.path) in known:
            by_reason.setdefault(f"{kept[info.relative].why}, says {kept[info.relative].by}", []).append(info)
        elif why := oversized(storage, source, info, pipeline.bounds_of(name), thorough=thorough):
            found.beyond.setdefault(name, []).append((info, why))
            by_reason.setdefault(why, []).append(info)
    for why, infos in by_reason.items():
        refused = source.policy.oversized == "fail" and not {plain_path(i.path) for i in infos} <= known
        if not refused:
            found.unread.setdefault(name, []).extend(plain_path(info.path) for info in infos)
        yield _Case(
            "source.oversized",
            infos,
            f"is set aside and not read: {why}" if not refused else f"is beyond the limits: {why}",
            "deliver it in smaller pieces under other names; or raise `limits:` of the source"
            + _again(pipeline.name, infos, refused),
            refused,
        )


def _again(pipeline: str, infos: Sequence[FileInfo], refused: bool) -> str:
    """Return how files are read once the limits are higher: one that is not set aside yet is just read."""
    if refused:
        return ", and run again; or say `policy: {oversized: aside}`, which leaves it out"
    each = " and so for each" * (len(infos) > 1)
    return f", and {set_aside_file(pipeline, plain_path(infos[0].path), back=True)}{each}"


def _of_columns(
    storage: Storage, source: Source, files: FileArrivals, columns: Mapping[str, str], aside: list[str]
) -> Iterator[_Case]:
    by_drift: dict[Drift, list[FileInfo]] = {}
    for info in files.new:
        drift = drift_of(storage, source, info, columns)
        if drift is not None:
            by_drift.setdefault(drift, []).append(info)
    for drift, drifted in by_drift.items():
        if source.policy.drift == "quarantine" and drift.readable:
            aside += [plain_path(info.path) for info in drifted]
        yield _Case(
            "source.drift",
            drifted,
            f"does not have the columns of the schema: {drift.what}"
            + ("" if drift.readable else "; Spark cannot read it"),
            "fix the file, or move it away: a checkpoint's schema cannot change; another schema needs a"
            " new pipeline",
            source.policy.drift == "fail" or not drift.readable,
        )


def _tell(found: FileTrouble, pipeline: Pipeline, name: str, case: _Case) -> None:
    what = f"source {name}: {named([info.path for info in case.files])} {case.what}"
    if case.refused:
        where = f"pipeline {pipeline.name}, source {name}"
        found.refusals.append(RefusedError(case.id, what, where=where, do=case.do))
    else:
        found.verdicts.append(PlanVerdict("warning", case.id, what, do=case.do, about=name))


def named(paths: Sequence[str]) -> str:
    """Return files as the subject of a sentence: one path, or the count and the first paths."""
    shown = ", ".join(sorted(paths)[:_SHOWN])
    return (
        shown
        if len(paths) == 1
        else f"{len(paths)} files ({shown}{', …' if len(paths) > _SHOWN else ''}): each"
    )
