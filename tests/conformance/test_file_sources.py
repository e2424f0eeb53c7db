"""SRC: files as a stream: formats, order, bounds of a batch, what is seen, too old, or cleaned."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from drawdown.metastore.records import Batch
from tests.support.refusals import refused_spec
from tests.support.sandbox import Sandbox, multiset
from tests.support.verdicts import verdicts
from tests.support.watching import watching

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


def _land(sandbox: Sandbox, *ids: int, folder: str = "landing/rows", at: float = 0) -> None:
    """One file a row, named by it; the greater the id, the newer the file."""
    for id in ids:
        sandbox.land_json(f"{folder}/{id}.json", [{"id": id}], mtime=at + 1_700_000_000 + id)


def out(sandbox: Sandbox) -> list[int]:
    return sorted(id for (id,) in sandbox.delta("tables/out"))


def _batches(sandbox: Sandbox, name: str) -> list[Batch]:
    with sandbox.metastore() as metastore:
        return [batch for batch in metastore.batches(name, 1) if batch.counts.read]


def _files_by_batch(sandbox: Sandbox, name: str) -> list[list[str]]:
    """Names of the files that each entry of the checkpoint's log of seen files holds, as Spark wrote it."""
    log = sandbox.storage / f"_drawdown/{name}/checkpoint-1/sources/0"
    entries = sorted((p for p in log.iterdir() if p.name.isdigit()), key=lambda p: int(p.name))
    return [[Path(json.loads(line)["path"]).name for line in e.read_text().splitlines()[1:]] for e in entries]


def _write(sandbox: Sandbox, format: str, at: str, rows: Iterable[tuple[int, str]]) -> None:
    """One file as another program would write it."""
    if format in ("parquet", "orc"):
        assert sandbox.spark is not None
        aside = sandbox.root / "aside"
        frame = sandbox.spark.createDataFrame(list(rows), "id INT, name STRING").coalesce(1)
        frame.write.format(format).mode("overwrite").save(str(aside))
        target = sandbox.storage / f"{at}.{format}"
        target.parent.mkdir(parents=True, exist_ok=True)
        next(aside.glob("part-*")).rename(target)
        return
    line = {"text": "{} {}", "csv": "{},{}", "json": '{{"id": {}, "name": "{}"}}', "xml": XML}[format]
    lines = [line.format(id, name) for id, name in rows]
    sandbox.land(f"{at}.{format}", ["<rows>", *lines, "</rows>"] if format == "xml" else lines)


FORMATS = ("text", "csv", "json", "parquet", "orc", "xml")


@pytest.mark.full
@pytest.mark.conformance("SRC-01")
def test_every_file_format_is_read_through_a_pattern(sandbox: Sandbox) -> None:
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
    sandbox.pipeline(
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
        _write(sandbox, format, "landing/east/2024-01/a", [(1, "one")])
        _write(sandbox, format, "landing/north/2024-01/a", [(9, "elsewhere")])
    assert sandbox.run("named").counts.read == len(FORMATS)
    for format in FORMATS:
        _write(sandbox, format, "landing/west/2024-02/a", [(2, "two"), (3, "three")])
        _write(sandbox, format, "landing/west/2023-12/a", [(9, "before")])
    sandbox.run("named")
    expected = [
        (id, name, format) for id, name in ((1, "one"), (2, "two"), (3, "three")) for format in FORMATS
    ]
    assert multiset(sandbox.delta("tables/out")) == multiset(expected)


@pytest.mark.full
@pytest.mark.conformance("SRC-01")
def test_files_come_in_the_order_of_their_modification_times(sandbox: Sandbox) -> None:
    sandbox.pipeline("ordered", _spec("{maxFilesPerTrigger: 1}"), **ASIDE)
    _land(sandbox, 3, 1, 2)
    sandbox.run("ordered")
    _land(sandbox, 5, 4)
    sandbox.run("ordered")
    assert _files_by_batch(sandbox, "ordered") == [[f"{id}.json"] for id in (1, 2, 3, 4, 5)]
    assert out(sandbox) == [1, 2, 3, 4, 5]


@pytest.mark.conformance("SRC-02")
def test_max_files_per_trigger_splits_a_backlog_within_one_drain(sandbox: Sandbox) -> None:
    sandbox.pipeline("split", _spec("{maxFilesPerTrigger: 2}"), **ASIDE)
    _land(sandbox, 1, 2, 3, 4, 5)
    assert sandbox.run("split").batches == 3
    _land(sandbox, 6, 7, 8)
    assert sandbox.run("split").batches == 2
    assert [batch.counts.read for batch in _batches(sandbox, "split")] == [2, 2, 1, 2, 1]
    assert out(sandbox) == list(range(1, 9))


@pytest.mark.full
@pytest.mark.conformance("SRC-03")
def test_max_bytes_per_trigger_takes_at_least_one_file(sandbox: Sandbox) -> None:
    size = len('{"id": 1}\n')
    sandbox.pipeline("sized", _spec(f"{{maxBytesPerTrigger: {2 * size + 1}}}"), **ASIDE)
    _land(sandbox, 1, 2, 3)
    assert sandbox.run("sized").batches == 2
    sandbox.land_json("landing/rows/4.json", [{"id": id} for id in range(10, 20)], mtime=1_700_000_010)
    _land(sandbox, 20)
    assert sandbox.run("sized").batches == 2
    # Two small files fit, three do not; one that is too big on its own comes alone.
    assert [batch.counts.read for batch in _batches(sandbox, "sized")] == [2, 1, 10, 1]
    assert out(sandbox) == [1, 2, 3, *range(10, 21)]

    both = _spec("{maxBytesPerTrigger: 10m, maxFilesPerTrigger: 5}")
    error = refused_spec(sandbox, "both", both, "spec.contradiction", **ASIDE)
    assert "cannot both be given" in error.what
    assert "keep one" in error.do


@pytest.mark.full
@pytest.mark.conformance("SRC-04")
def test_latest_first_reads_the_newest_file_first(sandbox: Sandbox) -> None:
    sandbox.pipeline("newest", _spec("{maxFilesPerTrigger: 1, latestFirst: true}"), **ASIDE)
    _land(sandbox, 1, 2, 3)
    sandbox.run("newest")
    _land(sandbox, 4, 5)
    sandbox.run("newest")
    assert _files_by_batch(sandbox, "newest") == [[f"{id}.json"] for id in (3, 2, 1, 5, 4)]
    assert out(sandbox) == [1, 2, 3, 4, 5]


@pytest.mark.full
@pytest.mark.conformance("SRC-05")
def test_file_name_only_takes_a_known_name_in_another_folder_for_the_same_file(sandbox: Sandbox) -> None:
    sandbox.pipeline("names", _spec("{fileNameOnly: true}", "landing/*"), **ASIDE)
    _land(sandbox, 1, 2, folder="landing/a")
    assert sandbox.run("names").counts.read == 2
    _land(sandbox, 2, folder="landing/b", at=60)
    assert sandbox.drain("names")[0].run is None, "there is nothing new under a name not seen before"
    _land(sandbox, 3, folder="landing/b", at=60)
    assert sandbox.run("names").counts.read == 1
    assert out(sandbox) == [1, 2, 3]
    assert (
        "of several files with one name it reads the first"
        in verdicts(sandbox, "names")["source.file-name-only"].what
    )


@pytest.mark.conformance("SRC-06")
def test_files_older_than_max_file_age_are_passed_over_and_the_record_says_so(sandbox: Sandbox) -> None:
    sandbox.pipeline("aged", _spec("{maxFileAge: 1h}"), **ASIDE)
    _land(sandbox, 1)
    _land(sandbox, 2, at=-7200)
    assert sandbox.run("aged").counts.read == 2, "all files of the first batch are valid, however old"
    _land(sandbox, 3, at=-7200)
    assert sandbox.drain("aged")[0].run is None
    _land(sandbox, 4)
    run = sandbox.run("aged")
    assert [notice["id"] for notice in run.notices] == ["source.too-old"]
    assert out(sandbox) == [1, 2, 4]


@pytest.mark.full
@pytest.mark.conformance("SRC-06")
def test_latest_first_with_a_limit_makes_spark_ignore_max_file_age(sandbox: Sandbox) -> None:
    sandbox.pipeline("ignored", _spec("{maxFileAge: 1h, latestFirst: true, maxFilesPerTrigger: 1}"), **ASIDE)
    _land(sandbox, 1)
    sandbox.run("ignored")
    _land(sandbox, 2, at=-7200)
    assert sandbox.run("ignored").stop_reason == "drained"
    assert out(sandbox) == [1, 2]
    warning = verdicts(sandbox, "ignored")["source.max-age-ignored"]
    assert warning.level == "warning"
    assert "latestFirst and maxFilesPerTrigger: Spark ignores maxFileAge" in warning.what

    sandbox.pipeline(
        "heeded", _spec("{maxFileAge: 1h, latestFirst: true}").replace("out,", "heeded,"), **ASIDE
    )
    assert "source.max-age-ignored" not in verdicts(sandbox, "heeded")


def _tree(sandbox: Sandbox, folder: str) -> list[str]:
    root = sandbox.storage / folder
    return sorted(str(p.relative_to(root)) for p in root.rglob("*.json") if not p.name.startswith("."))


def _archive_of(sandbox: Sandbox) -> str:
    """Spark archives a file under its own absolute path."""
    return f"archive{sandbox.storage}/landing/rows"


@pytest.mark.sampled
@pytest.mark.conformance("SRC-08")
@pytest.mark.parametrize("how", ["archive", "delete"])
def test_files_of_committed_batches_are_cleaned_by_the_next_run(sandbox: Sandbox, how: str) -> None:
    archive = ", sourceArchiveDir: archive" if how == "archive" else ""
    sandbox.pipeline("cleaned", _spec(f"{{cleanSource: {how}, maxFilesPerTrigger: 1{archive}}}"), **ASIDE)
    _land(sandbox, 1, 2, 3)
    sandbox.run("cleaned")
    assert _tree(sandbox, "landing/rows") == ["3.json"], "the last batch stays until a later one is planned"
    _land(sandbox, 4)
    sandbox.run("cleaned")
    assert _tree(sandbox, "landing/rows") == ["4.json"]
    moved = _tree(sandbox, _archive_of(sandbox)) if how == "archive" else []
    assert moved == (["1.json", "2.json", "3.json"] if how == "archive" else [])
    assert out(sandbox) == [1, 2, 3, 4]


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
def test_an_archive_that_the_source_matches_is_refused(sandbox: Sandbox, path: str, archive: str) -> None:
    spec = _spec(f"{{cleanSource: archive, sourceArchiveDir: {archive}}}", path)
    error = refused_spec(sandbox, "again", spec, "spec.contradiction", **ASIDE)
    assert "archived files could be read as new ones" in error.what
    assert "outside the source" in error.do


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
    sandbox: Sandbox, options: str, files: list[list[str]]
) -> None:
    """While the first batch runs, an older file than those that wait arrives."""
    sandbox.pipeline("cached", _spec(options), **ASIDE)
    _land(sandbox, 1, 2, 3)
    landed: list[int] = []

    def land_once() -> None:
        if not landed:
            landed.append(0)
            _land(sandbox, 0)

    with watching(sandbox, "cached", on_batch=land_once) as watched:
        watched.until(lambda: watched.published == 4)
    assert _files_by_batch(sandbox, "cached") == files
    assert out(sandbox) == [0, 1, 2, 3]

    # A drain lists once, when it starts.
    _land(sandbox, 5, 6)
    sandbox.run("cached")
    assert out(sandbox) == [0, 1, 2, 3, 5, 6]
    asked = [o for o in ("maxCachedFiles", "discardCachedInputRatio") if o in options]
    assert ("source.cached-files" in verdicts(sandbox, "cached")) == bool(asked)
