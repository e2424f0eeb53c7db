"""SRC: files as a stream: formats, order, bounds of a batch, what is seen, too old, or cleaned."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from drawdown.metastore.records import Batch
from tests.support.refusals import refused_spec
from tests.support.verdicts import verdicts
from tests.support.watching import watching
from tests.support.workspace import Workspace, multiset

SPEC = """
sources:
  rows: {{format: json, path: "{path}", schema: "id INT", options: {options}}}
transform: transform.sql
sink: {{format: delta, path: tables/out, schema: out.ddl}}
state: {{partitions: 2}}
"""
ASIDE = {"out_ddl": "id INT", "transform_sql": "SELECT id FROM rows"}
XML = "<row><id>{}</id><name>{}</name></row>"


def _spec(options: str = "{}", path: str = "landing/rows") -> str:
    return SPEC.format(path=path, options=options)


def _land(workspace: Workspace, *ids: int, folder: str = "landing/rows", at: float = 0) -> None:
    """One file a row, named by it; the greater the id, the newer the file."""
    for id in ids:
        workspace.land_json(f"{folder}/{id}.json", [{"id": id}], mtime=at + 1_700_000_000 + id)


def out(workspace: Workspace) -> list[int]:
    return sorted(id for (id,) in workspace.delta("tables/out"))


def _batches(workspace: Workspace, name: str) -> list[Batch]:
    with workspace.metastore() as metastore:
        return [batch for batch in metastore.batches(name, 1) if batch.counts.read]


def _files_by_batch(workspace: Workspace, name: str) -> list[list[str]]:
    """Names of the files that each entry of the checkpoint's log of seen files holds, as Spark wrote it."""
    log = workspace.storage / f"_drawdown/{name}/checkpoint-1/sources/0"
    entries = sorted((p for p in log.iterdir() if p.name.isdigit()), key=lambda p: int(p.name))
    return [[Path(json.loads(line)["path"]).name for line in e.read_text().splitlines()[1:]] for e in entries]


def _write(workspace: Workspace, format: str, at: str, rows: Iterable[tuple[int, str]]) -> None:
    """One file as another program would write it."""
    if format in ("parquet", "orc"):
        assert workspace.spark is not None
        aside = workspace.root / "aside"
        frame = workspace.spark.createDataFrame(list(rows), "id INT, name STRING").coalesce(1)
        frame.write.format(format).mode("overwrite").save(str(aside))
        target = workspace.storage / f"{at}.{format}"
        target.parent.mkdir(parents=True, exist_ok=True)
        next(aside.glob("part-*")).rename(target)
        return
    line = {"text": "{} {}", "csv": "{},{}", "json": '{{"id": {}, "name": "{}"}}', "xml": XML}[format]
    lines = [line.format(id, name) for id, name in rows]
    workspace.land(f"{at}.{format}", ["<rows>", *lines, "</rows>"] if format == "xml" else lines)


FORMATS = ("text", "csv", "json", "parquet", "orc", "xml")


@pytest.mark.conformance("SRC-01")
def test_every_file_format_is_read_through_a_pattern(workspace: Workspace) -> None:
    """One source a format in one pipeline; files beside the pattern stay unread."""
    sources = "".join(
        f"""
          {format}_rows:
            format: {format}
            path: "landing/{{east,west}}/2024-*"
            options: {{pathGlobFilter: "*.{format}"{", rowTag: row" if format == "xml" else ""}}}
            {"" if format == "text" else "schema: id INT, name STRING"}"""
        for format in FORMATS
    )
    text = "CAST(split(value, ' ')[0] AS INT) AS id, split(value, ' ')[1] AS name"
    selects = [
        f"SELECT {text if f == 'text' else 'id, name'}, '{f}' AS format FROM {f}_rows" for f in FORMATS
    ]
    workspace.pipeline(
        "named",
        f"""
        sources: {sources}
        transform: transform.sql
        sink: {{format: delta, path: tables/out, schema: out.ddl}}
        state: {{partitions: 2}}
        """,
        out_ddl="id INT, name STRING, format STRING",
        transform_sql=" UNION ALL ".join(selects),
    )
    for format in FORMATS:
        _write(workspace, format, "landing/east/2024-01/a", [(1, "one")])
        _write(workspace, format, "landing/north/2024-01/a", [(9, "elsewhere")])
    assert workspace.run("named").counts.read == len(FORMATS)
    for format in FORMATS:
        _write(workspace, format, "landing/west/2024-02/a", [(2, "two"), (3, "three")])
        _write(workspace, format, "landing/west/2023-12/a", [(9, "before")])
    workspace.run("named")
    expected = [
        (id, name, format) for id, name in ((1, "one"), (2, "two"), (3, "three")) for format in FORMATS
    ]
    assert multiset(workspace.delta("tables/out")) == multiset(expected)


@pytest.mark.conformance("SRC-01")
def test_files_come_in_the_order_of_their_modification_times(workspace: Workspace) -> None:
    workspace.pipeline("ordered", _spec("{maxFilesPerTrigger: 1}"), **ASIDE)
    _land(workspace, 3, 1, 2)
    workspace.run("ordered")
    _land(workspace, 5, 4)
    workspace.run("ordered")
    assert _files_by_batch(workspace, "ordered") == [[f"{id}.json"] for id in (1, 2, 3, 4, 5)]
    assert out(workspace) == [1, 2, 3, 4, 5]


@pytest.mark.conformance("SRC-02")
def test_max_files_per_trigger_splits_a_backlog_within_one_drain(workspace: Workspace) -> None:
    workspace.pipeline("split", _spec("{maxFilesPerTrigger: 2}"), **ASIDE)
    _land(workspace, 1, 2, 3, 4, 5)
    assert workspace.run("split").batches == 3
    _land(workspace, 6, 7, 8)
    assert workspace.run("split").batches == 2
    assert [batch.counts.read for batch in _batches(workspace, "split")] == [2, 2, 1, 2, 1]
    assert out(workspace) == list(range(1, 9))


@pytest.mark.full
@pytest.mark.conformance("SRC-03")
def test_max_bytes_per_trigger_takes_at_least_one_file(workspace: Workspace) -> None:
    size = len('{"id": 1}\n')
    workspace.pipeline("sized", _spec(f"{{maxBytesPerTrigger: {2 * size + 1}}}"), **ASIDE)
    _land(workspace, 1, 2, 3)
    assert workspace.run("sized").batches == 2
    workspace.land_json("landing/rows/4.json", [{"id": id} for id in range(10, 20)], mtime=1_700_000_010)
    _land(workspace, 20)
    assert workspace.run("sized").batches == 2
    # Two small files fit, three do not; one that is too big on its own comes alone.
    assert [batch.counts.read for batch in _batches(workspace, "sized")] == [2, 1, 10, 1]
    assert out(workspace) == [1, 2, 3, *range(10, 21)]

    both = _spec("{maxBytesPerTrigger: 10m, maxFilesPerTrigger: 5}")
    error = refused_spec(workspace, "both", both, "spec.contradiction", **ASIDE)
    assert "cannot both be given" in error.what
    assert "keep one" in error.do


@pytest.mark.full
@pytest.mark.conformance("SRC-04")
def test_latest_first_reads_the_newest_file_first(workspace: Workspace) -> None:
    workspace.pipeline("newest", _spec("{maxFilesPerTrigger: 1, latestFirst: true}"), **ASIDE)
    _land(workspace, 1, 2, 3)
    workspace.run("newest")
    _land(workspace, 4, 5)
    workspace.run("newest")
    assert _files_by_batch(workspace, "newest") == [[f"{id}.json"] for id in (3, 2, 1, 5, 4)]
    assert out(workspace) == [1, 2, 3, 4, 5]


@pytest.mark.full
@pytest.mark.conformance("SRC-05")
def test_file_name_only_takes_a_known_name_in_another_folder_for_the_same_file(workspace: Workspace) -> None:
    workspace.pipeline("names", _spec("{fileNameOnly: true}", "landing/*"), **ASIDE)
    _land(workspace, 1, 2, folder="landing/a")
    assert workspace.run("names").counts.read == 2
    _land(workspace, 2, folder="landing/b", at=60)
    assert workspace.drain("names")[0].run is None, "there is nothing new under a name not seen before"
    _land(workspace, 3, folder="landing/b", at=60)
    assert workspace.run("names").counts.read == 1
    assert out(workspace) == [1, 2, 3]
    assert "once a name was seen" in verdicts(workspace, "names")["source.file-name-only"].what


@pytest.mark.conformance("SRC-06")
def test_files_older_than_max_file_age_are_passed_over_and_the_record_says_so(workspace: Workspace) -> None:
    workspace.pipeline("aged", _spec("{maxFileAge: 1h}"), **ASIDE)
    _land(workspace, 1)
    _land(workspace, 2, at=-7200)
    assert workspace.run("aged").counts.read == 2, "all files of the first batch are valid, however old"
    _land(workspace, 3, at=-7200)
    assert workspace.drain("aged")[0].run is None
    _land(workspace, 4)
    run = workspace.run("aged")
    assert [notice["id"] for notice in run.notices] == ["source.too-old"]
    assert out(workspace) == [1, 2, 4]


@pytest.mark.full
@pytest.mark.conformance("SRC-06")
def test_latest_first_with_a_limit_makes_spark_ignore_max_file_age(workspace: Workspace) -> None:
    workspace.pipeline(
        "ignored", _spec("{maxFileAge: 1h, latestFirst: true, maxFilesPerTrigger: 1}"), **ASIDE
    )
    _land(workspace, 1)
    workspace.run("ignored")
    _land(workspace, 2, at=-7200)
    assert workspace.run("ignored").stop_reason == "drained"
    assert out(workspace) == [1, 2]
    warning = verdicts(workspace, "ignored")["source.max-age-ignored"]
    assert warning.level == "warning"
    assert "latestFirst and maxFilesPerTrigger: Spark ignores maxFileAge" in warning.what

    workspace.pipeline(
        "heeded", _spec("{maxFileAge: 1h, latestFirst: true}").replace("out,", "heeded,"), **ASIDE
    )
    assert "source.max-age-ignored" not in verdicts(workspace, "heeded")


def _tree(workspace: Workspace, folder: str) -> list[str]:
    root = workspace.storage / folder
    return sorted(str(p.relative_to(root)) for p in root.rglob("*.json") if not p.name.startswith("."))


def _archive_of(workspace: Workspace) -> str:
    """Spark archives a file under its own absolute path."""
    return f"archive{workspace.storage}/landing/rows"


@pytest.mark.conformance("SRC-08")
@pytest.mark.parametrize("how", ["archive", "delete"])
def test_files_of_committed_batches_are_cleaned_by_the_next_run(workspace: Workspace, how: str) -> None:
    archive = ", sourceArchiveDir: archive" if how == "archive" else ""
    workspace.pipeline("cleaned", _spec(f"{{cleanSource: {how}, maxFilesPerTrigger: 1{archive}}}"), **ASIDE)
    _land(workspace, 1, 2, 3)
    workspace.run("cleaned")
    assert _tree(workspace, "landing/rows") == ["3.json"], "the last batch stays until a later one is planned"
    _land(workspace, 4)
    workspace.run("cleaned")
    assert _tree(workspace, "landing/rows") == ["4.json"]
    moved = _tree(workspace, _archive_of(workspace)) if how == "archive" else []
    assert moved == (["1.json", "2.json", "3.json"] if how == "archive" else [])
    assert out(workspace) == [1, 2, 3, 4]


@pytest.mark.conformance("SRC-08")
@pytest.mark.parametrize(
    ("path", "archive"),
    [
        ("landing/rows", "landing/rows/done"),
        ("landing/rows", "landing"),
        ("landing?/rows/*", "landing1/rows/archive/dir"),
        ("landing?/rows/*", "landing1/rows"),
        ("{a/b,c/d}/*", "c/d/done"),
    ],
)
def test_an_archive_that_the_source_matches_is_refused(workspace: Workspace, path: str, archive: str) -> None:
    spec = _spec(f"{{cleanSource: archive, sourceArchiveDir: {archive}}}", path)
    error = refused_spec(workspace, "again", spec, "spec.contradiction", **ASIDE)
    assert "archived files could be read as new ones" in error.what
    assert "outside of the source" in error.do


@pytest.mark.full
@pytest.mark.conformance("SRC-07")
@pytest.mark.parametrize(
    ("options", "files"),
    [
        # What is cached is read before the folder is listed again.
        ("{maxFilesPerTrigger: 1}", [["1.json"], ["2.json"], ["3.json"], ["0.json"]]),
        ("{maxFilesPerTrigger: 1, maxCachedFiles: 0}", [["1.json"], ["0.json"], ["2.json"], ["3.json"]]),
        ("{maxFilesPerTrigger: 1, maxCachedFiles: 1}", [["1.json"], ["2.json"], ["0.json"], ["3.json"]]),
        # One cached file is half of a batch of two.
        ("{maxFilesPerTrigger: 2}", [["1.json", "2.json"], ["3.json"], ["0.json"]]),
        (
            "{maxFilesPerTrigger: 2, discardCachedInputRatio: 0.6}",
            [["1.json", "2.json"], ["0.json", "3.json"]],
        ),
    ],
)
def test_cached_files_decide_when_a_watch_lists_again(
    workspace: Workspace, options: str, files: list[list[str]]
) -> None:
    """While the first batch runs, an older file than those that wait arrives."""
    workspace.pipeline("cached", _spec(options), **ASIDE)
    _land(workspace, 1, 2, 3)
    landed: list[int] = []

    def land_once() -> None:
        if not landed:
            landed.append(0)
            _land(workspace, 0)

    with watching(workspace, "cached", on_batch=land_once) as watched:
        watched.until(lambda: watched.published == 4)
    assert _files_by_batch(workspace, "cached") == files
    assert out(workspace) == [0, 1, 2, 3]

    # A drain lists once, when it starts.
    _land(workspace, 5, 6)
    workspace.run("cached")
    assert out(workspace) == [0, 1, 2, 3, 5, 6]
    asked = [o for o in ("maxCachedFiles", "discardCachedInputRatio") if o in options]
    assert ("source.cached-files" in verdicts(workspace, "cached")) == bool(asked)
