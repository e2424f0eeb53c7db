"""Keys, options and modes of each kind of source and sink, from the kinds' own records, as Markdown."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from drawdown.kinds import SinkKind, SourceKind
from drawdown.sinks.registry import SINKS
from drawdown.sources.registry import SOURCES
from drawdown.spec.query_settings import CONF, MUST_BE, ROCKSDB, STATE
from drawdown.spec.source import Source
from drawdown.values.option_types import TEXT, OptionType

_GUIDE = "https://spark.apache.org/docs/4.2.0"
_ROWS = "| | |\n|---|---|"


def sources() -> Iterator[str]:
    """Lines of the section on kinds of sources."""
    yield "## Kinds of sources\n"
    yield (
        "Every source takes `format`, `schema`, `options`, `watermark`, `static` and `malformed`, where they"
        " apply. Options are Spark's own; its guide describes those of"
        f" [files]({_GUIDE}/sql-data-sources.html) and of"
        f" [Kafka]({_GUIDE}/structured-streaming-kafka-integration.html).\n"
    )
    for kind in {kind.formats: kind for kind in SOURCES.values()}.values():
        yield from _heading(kind, "source")
        yield f"| keys of its own | {_names(kind.keys)} |"
        yield f"| `replay` | {'yes' if kind.replay else 'no: it cannot be read a second time'} |"
        yield from _source_options(kind)
        for format, why in kind.test_only.items():
            yield f"| `{format}` has no schedule | {why} |"
        yield ""


def sinks() -> Iterator[str]:
    """Lines of the section on kinds of sinks."""
    yield "## Kinds of sinks\n"
    yield "Every sink takes `format`, `schema`, `mode`, `publish`, `ordered`, `options`, where they apply.\n"
    for kind in {kind.formats: kind for kind in SINKS.values()}.values():
        yield from _heading(kind, "sink")
        yield f"| keys of its own | {_names(kind.keys)} |"
        yield f"| required | {_names(name for name, _ in kind.required)} |"
        modes, why = kind.modes
        yield f"| modes | {', '.join(f'`{mode}`' for mode in modes)}{f': {why}' if why else ''} |"
        yield f"| `publish: audited` | {_audited(kind)} |"
        yield f"| `replay` | {f'no: {kind.no_replay}' if kind.no_replay else 'yes'} |"
        yield from _options({format: _with_types(known) for format, known in kind.options.items()})
        if kind.test_only:
            yield f"| no schedule | {kind.test_only} |"
        yield ""


def settings() -> Iterator[str]:
    """Lines of the section on settings of Spark's."""
    yield "## Settings of state and conf\n"
    yield "Under `state`, without the prefix `spark.sql.streaming.stateStore.`; names that start with"
    yield "`rocksdb.` need `provider: rocksdb`.\n"
    yield from _settings({**STATE, **ROCKSDB})
    yield "Under `conf`, by their full names.\n"
    yield from _settings(CONF)


def _settings(names: Mapping[str, str]) -> Iterator[str]:
    yield "| value | settings |\n|---|---|"
    for kind, words in MUST_BE.items():
        if of_kind := [name for name, its in names.items() if its == kind]:
            yield f"| {words} | {_names(of_kind)} |"
    yield ""


def _heading(kind: SourceKind | SinkKind, role: str) -> Iterator[str]:
    yield f"### {kind.title} as a {role}\n"
    formats = _names(kind.formats, keep_order=True)
    yield f"`format:` {formats}. See [{kind.page.partition('.')[0]}]({kind.page}).\n"
    yield _ROWS


def _source_options(kind: SourceKind) -> Iterator[str]:
    known = {
        (format, static): _of_source(kind, format, static)
        for format in kind.formats
        for static in (True, False)
    }
    streams = {format: known[format, False] for format in kind.formats}
    if None in streams.values():
        yield "| options | those of your data source, passed on as they are |"
        return
    static = {format: known[format, True] or {} for format in kind.formats}
    yield from _options(
        {
            format: {name: found[name] for name in found.keys() & static[format].keys()}
            for format, found in streams.items()
            if found is not None
        }
    )
    for words, one, other in (("of streams", streams, static), ("with `static: true`", static, streams)):
        extra = {
            name: type
            for format in kind.formats
            for name, type in (one[format] or {}).items()
            if name not in (other[format] or {})
        }
        if extra:
            yield f"| options {words} | {_typed(extra)} |"


def _of_source(kind: SourceKind, format: str, static: bool) -> Mapping[str, OptionType] | None:
    found = kind.options(Source.model_construct(format=format, static=static))
    return None if found is None else _with_types(found)


def _with_types(options: Mapping[str, OptionType] | Collection[str]) -> Mapping[str, OptionType]:
    """A kind may name its options without types: then any text is taken."""
    return options if isinstance(options, Mapping) else TEXT.of(*options)


def _options(by_format: Mapping[str, Mapping[str, OptionType]]) -> Iterator[str]:
    """Lines for options: those that all formats share, then what each has besides."""
    first, *others = by_format.values()
    shared = {name: type for name, type in first.items() if all(name in other for other in others)}
    if shared or not any(by_format.values()):
        yield f"| options | {_typed(shared)} |"
    for format, options in by_format.items():
        if more := {name: type for name, type in options.items() if name not in shared}:
            yield f"| options of `{format}` | {_typed(more)} |"


def _typed(options: Mapping[str, OptionType]) -> str:
    """Options in alphabetical order with what each takes; text goes without saying."""
    said = [
        f"`{name}`" if options[name] is TEXT else f"`{name}` ({options[name].must_be})"
        for name in sorted(options)
    ]
    return ", ".join(said) or "none"


def _audited(kind: SinkKind) -> str:
    ways = {
        delivery: kind.staging(kind.modes[0][0], delivery) != "none"
        for delivery in ("exactly_once", "at_least_once")
    }
    if len(set(ways.values())) == 2:
        return "with `delivery: exactly_once`"
    return "yes" if all(ways.values()) else "no: each batch is visible as it is written"


def _names(names: Iterable[str], keep_order: bool = False) -> str:
    listed = list(names) if keep_order else sorted(names)
    return ", ".join(f"`{name}`" for name in listed) or "none"
