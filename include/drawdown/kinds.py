"""What a kind of source or of sink says about itself: formats, keys, options, checks, and where its code is.

Each kind's folder has a kind.py with its record; sources/registry.py and sinks/registry.py list them. A
kind.py imports neither Spark nor a client library: Airflow's DAG processor checks specs.

Names of options are Spark's own, in its documented spelling, read from the classes of Spark 4.2.0 and Delta
4.4.0 that each kind.py names: one that Spark would accept and ignore is an error. Left out on purpose are
those that name files outside the spec's own paths, load classes, or repeat a key of the spec (`_ELSEWHERE`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from drawdown.values.model import problem
from drawdown.values.nearest import did_you_mean

if TYPE_CHECKING:
    from drawdown.spec import Sink, Source

Code = str
"""``package.module:name``, imported when it is first needed: see `code_at`."""

Staging = Literal["none", "in place", "apart"]
"""``none``: each batch is visible as it is written; ``in place``: beside the rows that readers see;
``apart``: in a folder of its own, until a publish has taken them into the target."""


@dataclass(frozen=True, kw_only=True)
class SourceKind:
    """A kind of source.

    Attributes:
        formats: values of ``format:``.
        reader: ``(session, project, pipeline, name) -> DataFrame``, a stream with the user's columns and the
            SYSTEM_COLUMNS of sources/spark_columns.py; of a kind with ``infer_schema`` also ``inferred``.
        backlog: ``(SourceProgress) -> SourceFinding``, what waits, without Spark (sources/findings.py).
            None: only Spark can tell, so each run starts.
        keys: its keys among those that not every kind has.
        options: the names that Spark reads for a source; None when they are the source's own.
        check: raises a `problem` for what is missing or contradicts itself.
        takes_files: whether a stream of it takes files of a folder, whole.
        cleans: whether options let files leave the source's folder once they were read.
        replays: whether it gives again what it has given, so that `replay:` can be said.
        check_replay: raises a `problem` for a source, by its name, whose options forbid that.
        test_only: by format why no schedule may use it.
    """

    formats: tuple[str, ...]
    reader: Code
    backlog: Code | None = None
    keys: frozenset[str] = frozenset()
    options: Callable[[Source], frozenset[str] | None]
    check: Callable[[Source], None]
    takes_files: bool = False
    cleans: Callable[[Mapping[str, object]], bool] = lambda _: False
    replays: bool = False
    check_replay: Callable[[str, Source], None] = lambda _, __: None
    test_only: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class SinkKind:
    """A kind of sink.

    Attributes:
        formats: values of ``format:``.
        stage: for a sink its class with the methods of sinks/stage.py, made of ``(workspace, pipeline)``.
        target: for a sink ``(project, pipeline, keys) -> Target`` (changes/protocol.py), which makes staged
            rows visible; None for a sink that shows each batch itself, as it is written.
        staging: where rows of a sink with this ``mode`` and ``delivery`` wait for their publish.
        shown: where the rows go, in a word or two.
        keys: its keys among those that not every kind has.
        required: keys that it cannot do without, each with an example.
        options: the names that a sink of this format takes.
        check: raises a `problem` for what contradicts itself.
        modes: output modes, and why no others.
        readable: whether rows can be read back after they were written.
        out_of_order: whether a slice can be shown although an earlier one is held.
        no_replay: why the rows of an interval cannot be taken back; None when they can.
        test_only: why no schedule may use it.
    """

    formats: tuple[str, ...]
    stage: Callable[[Sink], Code]
    target: Callable[[Sink], Code | None] = lambda _: None
    staging: Callable[[str, str], Staging] = lambda _, __: "none"
    shown: Callable[[Sink], str] = lambda sink: sink.path or sink.function or sink.format
    keys: frozenset[str] = frozenset()
    required: tuple[tuple[str, str], ...] = ()
    options: Mapping[str, frozenset[str]] = field(default_factory=dict)
    check: Callable[[Sink], None] = lambda _: None
    modes: tuple[tuple[str, ...], str] = (("append", "update", "complete"), "")
    readable: bool = False
    out_of_order: bool = False
    no_replay: str | None
    test_only: str | None = None


def refuse_static(source: Source) -> None:
    """Raises a `problem` when a source that can only be a stream says ``static``."""
    if source.static:
        raise problem(
            "contradiction", f"a {source.format} source cannot be static", "static", do="remove the key"
        )


TIME_OPTIONS = frozenset({"dateFormat", "timestampFormat", "timestampNTZFormat", "timeFormat", "locale"})
"""How text formats read and write times."""

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
    """The kinds by the formats they have."""
    return {format: kind for kind in map(code_at, kinds) for format in kind.formats}


def code_at(code: Code) -> Any:
    """What stands at ``package.module:name`` or ``package.module:Class.method``."""
    module, _, name = code.partition(":")
    return reduce(getattr, name.split("."), import_module(module))


def check_names(given: Iterable[str], known: Collection[str], *at: str) -> None:
    """Raises a PydanticCustomError (``unknown-option``) for the first name that is not known."""
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
