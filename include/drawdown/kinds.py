"""How a kind of source or sink describes itself: formats, keys, options, checks, and where its code is.

Each kind's folder has a kind.py with its record; sources/registry.py and sinks/registry.py list them. A
kind.py imports neither Spark nor a client library: Airflow's DAG processor checks specs.

Option names are Spark's own, in its documented spelling, read from the classes of Spark 4.2.0 and Delta
4.4.0 that each kind.py names: an option that Spark would accept and ignore is an error. Options that name
files outside the spec's own paths, load classes, or repeat a key of the spec (`_ELSEWHERE`) are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import reduce
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from drawdown.values.model import problem
from drawdown.values.nearest import did_you_mean
from drawdown.values.option_types import TEXT, OptionType

if TYPE_CHECKING:
    from drawdown.spec import Sink, Source

Options = Mapping[str, OptionType] | Collection[str]
"""The options of a kind: with the type of each value, or only the names."""

Code = str
"""``package.module:name``, imported at the first use, see `code_at`."""

Staging = Literal["none", "in place", "apart"]
"""``none``: each batch is visible as it is written; ``in place``: rows wait beside those that readers see;
``apart``: rows wait in a separate folder until a publish copies them into the target."""


@dataclass(frozen=True, kw_only=True)
class ReplayCode:
    """How a replay reads the rows of a source again, from the first run up to where readers stand.

    Attributes:
        check: ``(ReplayedSource) -> Any``, without Spark: raises a RefusedError if rows that the interval
            needs are gone (sources/replay_basis.py).
        rows: ``(session, ReplayedSource, inferred) -> DataFrame``, a batch with the columns of `reader`.
    """

    check: Code
    rows: Code


@dataclass(frozen=True, kw_only=True)
class SourceKind:
    """A kind of source.

    Attributes:
        formats: values of ``format:``.
        reader: ``(session, project, pipeline, name) -> DataFrame``, a stream with the user's columns and
            the SYSTEM_COLUMNS of sources/spark_system_columns.py; of a kind with ``infer_schema`` also
            ``inferred``.
        backlog: ``(SourceProgress) -> SourceFinding``, what waits, without Spark (sources/findings.py).
            None: only Spark can find out, so each run starts it.
        position: ``(storage, source, offset) -> dict``, what a batch notes in ``Batch.by_source`` of the
            place up to which it has read: by it a run notices a source that was put back. None: nothing.
        title: what its section of docs/pipeline-yaml.md is called.
        published: ``(PublishedSource) -> notice | None``, called after a publish for a source with
            `commit_group:` (sources/published.py); it raises nothing.
        page: where the docs say more, relative to docs/.
        keys: its keys besides those that every kind has, fields of spec/source.py.
        static: whether `static: true` may read it whole, by Spark's own reader of the format.
        columns: by format, the DDL of columns that are always the same.
        options: what Spark reads for a source, each with the type of its value (values/option_types.py);
            None when they are the source's own.
        check: raises a `problem` for keys that are missing or contradict each other.
        takes_files: whether its stream takes whole files of a folder.
        cleans: whether options remove files from the source's folder once they were read.
        replay: how it returns earlier rows again; None: a pipeline that reads it has no `replay:`.
        check_replay: raises a `problem` for a source, by its name, whose options prevent a replay.
        test_only: by format, why no schedule may use it.
    """

    formats: tuple[str, ...]
    title: str
    page: str
    reader: Code
    backlog: Code | None = None
    position: Code | None = None
    published: Code | None = None
    keys: frozenset[str] = frozenset()
    static: bool = False
    columns: Mapping[str, str] = field(default_factory=dict)
    options: Callable[[Source], Options | None]
    check: Callable[[Source], None]
    takes_files: bool = False
    cleans: Callable[[Mapping[str, object]], bool] = lambda _: False
    replay: ReplayCode | None = None
    check_replay: Callable[[str, Source], None] = lambda _, __: None
    test_only: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Keeps:
    """Which values a kind of sink keeps as they are; a batch with others is refused before it is staged.

    Attributes:
        zero: whether a text may hold the character U+0000.
        years: which years a time may have, as a text for people; "" for all that Spark has.
        key_bytes: the longest key, the texts of all `keys:` together; None for any.
        empty_partitions: whether a partition's value may be an empty text.
    """

    zero: bool = True
    years: str = ""
    key_bytes: int | None = None
    empty_partitions: bool = True


@dataclass(frozen=True, kw_only=True)
class SinkKind:
    """A kind of sink.

    Attributes:
        formats: values of ``format:``.
        stage: for a sink, its class with the methods of sinks/stage.py, made of ``(workspace, pipeline)``.
        target: for a sink, ``(project, pipeline, keys) -> Target`` (changes/protocol.py), which makes staged
            rows visible; None for a sink that shows each batch itself as it is written.
        staging: where rows of a sink with this ``mode`` and ``delivery`` wait for their publish.
        shown: where the rows go, in a word or two.
        title, page: as of a source.
        keys: its keys besides those that every kind has, fields of spec/sink.py.
        required: required keys, each with an example.
        options: the option names of a sink of this format.
        check: raises a `problem` for keys that contradict each other.
        modes: output modes, and why no others.
        keeps: which values it keeps.
        readable: whether rows can be read back after they were written.
        out_of_order: whether a slice can be shown although an earlier one is held. A slice that is released
            after later ones has a transaction id of its own, for which the target answers as well.
        no_replay: why the rows of an interval cannot be replaced; None when they can.
        test_only: why no schedule may use it.
    """

    formats: tuple[str, ...]
    title: str
    page: str
    stage: Callable[[Sink], Code]
    target: Callable[[Sink], Code | None] = lambda _: None
    staging: Callable[[str, str], Staging] = lambda _, __: "none"
    shown: Callable[[Sink], str] = lambda sink: sink.path or sink.function or sink.format
    keys: frozenset[str] = frozenset()
    required: tuple[tuple[str, str], ...] = ()
    options: Mapping[str, Options] = field(default_factory=dict)
    check: Callable[[Sink], None] = lambda _: None
    modes: tuple[tuple[str, ...], str] = (("append", "update", "complete"), "")
    keeps: Keeps = Keeps()
    readable: bool = False
    out_of_order: bool = False
    no_replay: str | None
    test_only: str | None = None


TIME_OPTIONS = TEXT.of("dateFormat", "timestampFormat", "timestampNTZFormat", "timeFormat", "locale")
"""Options of text formats for reading and writing times."""

_ELSEWHERE = {
    "path": "the key `path` of the source says it",
    "mode": "the key `malformed` says it",
    "columnNameOfCorruptRecord": "the key `malformed` says it",
    "inferSchema": "the key `infer_schema` of the source says it",
    "modifiedBefore": "file streams refuse it",
    "endingOffsets": "a stream has no end; bound the drain instead",
    "endingTimestamp": "a stream has no end; bound the drain instead",
    "endingOffsetsByTimestamp": "a stream has no end; bound the drain instead",
    "kafka.bootstrap.servers": "brokers stand in project.yaml",
    "kafka.security.protocol": "brokers stand in project.yaml",
    "kafka.sasl.mechanism": "brokers stand in project.yaml",
    "kafka.sasl.jaas.config": "brokers stand in project.yaml",
    "kafka.group.id": "Spark makes its own; groupIdPrefix names it",
    "checkpointLocation": "Drawdown keeps the checkpoint",
}


def by_format(*kinds: Code) -> dict[str, Any]:
    """Return the kinds by format."""
    return {format: kind for kind in map(code_at, kinds) for format in kind.formats}


def code_at(code: Code) -> Any:
    """Return what is at ``package.module:name`` or ``package.module:Class.method``."""
    module, _, name = code.partition(":")
    return reduce(getattr, name.split("."), import_module(module))


def check_options(given: Mapping[str, object], known: Options, *at: str) -> None:
    """Raise a PydanticCustomError for the first unknown name (``unknown-option``).

    Else raise one for the first value that Spark could not read (``wrong-value``).
    """
    for name in given:
        if name not in known:
            why = _ELSEWHERE.get(name) or did_you_mean(name, known)
            raise problem(
                "unknown-option",
                f"this option has no effect here; {why}",
                *at,
                name,
                do="correct or remove it",
            )
    if not isinstance(known, Mapping):
        return
    for name, value in given.items():
        kind: OptionType = known[name]
        if not kind.takes(value):
            raise problem(
                "wrong-value",
                f"must be {kind.must_be}, not {str(value)[:40]!r}",
                *at,
                name,
                do=f"correct the value, such as `{name}: {kind.example}`",
            )
