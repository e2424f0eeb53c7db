"""Delta tables as a source, by path or by the name that another pipeline's sink gives its table.

Option names: DeltaOptions. Left out: ``schemaTrackingLocation``, a file outside the spec's own paths.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from drawdown.kinds import ReplayCode, SourceKind
from drawdown.sources.rate_limits import BOUNDS, refuse_two_bounds
from drawdown.values.model import problem
from drawdown.values.option_types import FLAG, TEXT, VERSION, WHOLE, OptionType

if TYPE_CHECKING:
    from drawdown.spec import Source

_STREAM = (
    BOUNDS
    | VERSION.of("startingVersion")
    | TEXT.of("startingTimestamp", "excludeRegex")
    | FLAG.of("ignoreDeletes", "ignoreChanges", "skipChangeCommits", "readChangeFeed", "failOnDataLoss")
)
_STATIC = WHOLE.of("versionAsOf") | TEXT.of("timestampAsOf")
# Options by which a stream's rows differ from the table's; startingVersion: 0 gives all rows.
_NOT_THE_TABLE: Mapping[str, str] = {
    "readChangeFeed": "that has no changes",
    "startingVersion": "that has the earlier rows, too",
    "startingTimestamp": "that has the earlier rows, too",
    "excludeRegex": "that has the rows of all files",
}


def _options(source: Source) -> Mapping[str, OptionType]:
    return _STATIC if source.static else _STREAM


def _check(source: Source) -> None:
    refuse_two_bounds(source.options)
    by = "table" if source.format == "table" else "path"
    if getattr(source, by) is None:
        raise problem("missing-key", f"a {source.format} source needs a {by}", do=f"add `{by}: ...`")
    other = "path" if by == "table" else "table"
    if other in source.model_fields_set:
        raise problem("no-effect", f"a {source.format} source has no {other}", other, do="remove the key")
    if source.schema_text is not None:
        raise problem("no-effect", "a Delta table knows its schema", "schema", do="remove the key")


def _check_replay(name: str, source: Source) -> None:
    for option, why in _NOT_THE_TABLE.items():
        if str(source.options.get(option, "0")).lower() not in ("0", "false"):
            raise problem(
                "contradiction",
                f"source {name} cannot be replayed with {option}: a replay reads the table as of a"
                f" version, and {why}",
                "replay", do=f"remove `replay:` or {option}",
            )  # fmt: skip


KIND = SourceKind(
    formats=("delta", "table"),
    title="Delta tables",
    page="guarantees.md",
    reader="drawdown.sources.delta.reader:read_delta",
    backlog="drawdown.sources.delta.backlog:waiting",
    position="drawdown.sources.delta.identity:position",
    keys=frozenset({"path", "table"}),
    static=True,
    options=_options,
    check=_check,
    replay=ReplayCode(
        check="drawdown.sources.delta.replay:version_to_read",
        rows="drawdown.sources.delta.reader:read_replayed_version",
    ),
    check_replay=_check_replay,
)
