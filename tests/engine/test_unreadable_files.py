"""A file that was cut short, or is not what its name says, is named; the batch waits for a whole one."""

from __future__ import annotations

import bz2
import gzip
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from drawdown.errors import SourceError
from tests.support.sandbox import Sandbox

ROWS = "".join(f'{{"n": {n}, "text": "{os.urandom(8).hex()}"}}\n' for n in range(5_000)).encode()


def _half(content: bytes) -> bytes:
    return content[: len(content) // 2]


def _orc(folder: Path) -> bytes:
    import pyarrow as pa
    from pyarrow import orc

    orc.write_table(pa.table({"n": [1, 2], "text": ["a", "b"]}), str(folder / "whole.orc"))
    return (folder / "whole.orc").read_bytes()


BROKEN: dict[str, tuple[str, str, Callable[[Path], tuple[bytes, bytes]]]] = {
    "truncated-gzip": ("json", "a b.json.gz", lambda _: (_half(gzip.compress(ROWS)), gzip.compress(ROWS))),
    "no-gzip": ("json", "a.json.gz", lambda _: (ROWS, gzip.compress(ROWS))),
    "truncated-bzip2": ("json", "a.json.bz2", lambda _: (_half(bz2.compress(ROWS)), bz2.compress(ROWS))),
    "truncated-orc": ("orc", "a.orc", lambda folder: (_half(_orc(folder)), _orc(folder))),
}


@pytest.mark.parametrize("kind", BROKEN)
@pytest.mark.sampled
def test_a_file_that_cannot_be_read_is_named(sandbox: Sandbox, tmp_path: Path, kind: str) -> None:
    format, name, contents = BROKEN[kind]
    broken, whole = contents(tmp_path)
    sandbox.pipeline(
        "rows",
        f"""
        sources: {{rows: {{format: {format}, path: landing/rows, schema: "n INT, text STRING"}}}}
        transform: transform.sql
        sink: {{format: delta, path: tables/rows, schema: out.ddl}}
        """,
        out_ddl="n INT, text STRING",
        transform_sql="SELECT * FROM rows",
    )
    file = sandbox.land(f"landing/rows/{name}", "")
    file.write_bytes(broken)
    error = sandbox.drain("rows")[0].error
    assert isinstance(error, SourceError), error
    assert (error.id, error.exit_code) == ("source.unreadable-file", 5), str(error)
    assert str(file) in error.what
    assert "Exception" not in error.what
    file.write_bytes(whole)
    assert sandbox.run("rows").counts.published > 0
