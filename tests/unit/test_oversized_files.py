"""Files that would end Spark's JVM are known by cheap looks, and ordinary files are not read for that."""

import bz2
import gzip
import io
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from pydantic import SecretStr

from drawdown.sources.files.oversized import oversized
from drawdown.sources.files.record_length import any_longer, is_longer
from drawdown.spec import ObjectStorage, Source
from drawdown.spec.limits import SourceLimits
from drawdown.storage import Storage
from tests.support.s3_servers import Moto

pytestmark = pytest.mark.capability("SAFE-07")

BOUNDS = SourceLimits(record=65_536, nesting=20, columns=50, expansion=100)
LINE = b'{"id": 1}\n'
LONG = b'{"id": "' + b"x" * 500_000 + b'"}\n'
ORDINARY = b"".join(b'{"id": %d, "word": "%x"}\n' % (n, n * n * 7_919) for n in range(20_000))


def _zstd(content: bytes) -> bytes:
    packed: bytes = pa.compress(content, codec="zstd", asbytes=True)
    return packed


def _hadoop(codec: str) -> Callable[[bytes], bytes]:
    """Hadoop's framing: the size of a block's text, then its pieces, each with its own size before it."""

    def packed(content: bytes) -> bytes:
        piece: bytes = pa.compress(content, codec=codec, asbytes=True)
        return struct.pack(">II", len(content), len(piece)) + piece

    return packed


PACK = {"gz": gzip.compress, "bz2": bz2.compress, "deflate": zlib.compress, "zst": _zstd}


def _look(storage: Storage, name: str, content: bytes, thorough: bool = False, **source: Any) -> str | None:
    storage.write_atomic(name, content)
    info = storage.info(name)
    assert info is not None
    given = Source(**{"format": "json", "path": "in", "schema": "id INT", **source})
    return oversized(storage, given, info, BOUNDS, thorough=thorough)


@pytest.fixture(params=["disk", "s3"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    if request.param == "disk":
        return Storage(str(tmp_path))
    server: Moto = request.getfixturevalue("s3")
    access = ObjectStorage(
        address=f"s3://{server.bucket()}/lake",
        endpoint=server.endpoint,
        access_key=server.access_key,
        secret_key=SecretStr(server.secret_key),
    )
    return Storage(access.address, access)


@pytest.mark.parametrize(
    ("format", "options"),
    [("json", {}), ("csv", {}), ("text", {}), ("xml", {"rowTag": "r"}), ("text", {"lineSep": "||"})],
)
def test_a_record_that_is_too_long_is_found(storage: Storage, format: str, options: dict[str, Any]) -> None:
    of = {"format": format, "options": options, **({} if format != "text" else {"schema": None})}
    start, end = {"xml": (b"<r>", b"</r>")}.get(format, (b"", b"||" if options.get("lineSep") else b"\n"))
    short, long = start + b"x" * 1_000 + end, start + b"x" * 100_000 + end
    assert _look(storage, "a", short * 300, **of) is None
    assert "longer than 64.0 KiB" in (_look(storage, "b", short * 300 + long + short, **of) or "")
    for ending, pack in PACK.items():
        assert _look(storage, f"c.{ending}", pack(short * 60), **of) is None
        assert _look(storage, f"d.{ending}", pack(short * 60 + long), **of) is not None


def test_a_file_that_is_one_record_is_measured_whole(storage: Storage) -> None:
    of = {"options": {"multiLine": True}}
    assert _look(storage, "a.json", LINE * 1_000, **of) is None
    assert "one record" in (_look(storage, "b.json", LINE * 10_000, **of) or "")
    assert "one record" in (_look(storage, "c.json.gz", gzip.compress(ORDINARY), **of) or "")
    assert "one record" in (
        _look(storage, "d", LINE * 10_000, format="text", schema=None, options={"wholetext": True}) or ""
    )


def test_a_file_that_expands_too_far_is_found_without_unpacking_all_of_it(storage: Storage) -> None:
    for ending, pack in PACK.items():
        assert "100 times that" in (_look(storage, f"a.{ending}", pack(b"\n" * 5_000_000)) or "")
    for ending, codec in (("lz4", "lz4_raw"), ("snappy", "snappy")):
        said = _look(storage, f"b.{ending}", _hadoop(codec)(b"\n" * 50_000_000))
        assert said is not None or ending == "snappy"  # which packs 21 to 1 at most


def test_what_ordinary_text_becomes_is_ordinary(storage: Storage) -> None:
    for ending, pack in PACK.items():
        assert _look(storage, f"a.json.{ending}", pack(ORDINARY)) is None
        assert _look(storage, f"b.json.{ending}", pack(b"")) is None
        assert _look(storage, f"c.json.{ending}", b"\xff\x00" * 50_000) is None  # its batch says so


def test_a_file_that_hides_what_it_becomes_is_found_by_a_thorough_look(storage: Storage) -> None:
    sums = (zlib.crc32(b"%d" % n) for n in range(150_000))
    words = b"".join(b'{"id": %d, "word": "%x"}\n' % (n, n * 7) for n in sums)
    content = gzip.compress(words) + gzip.compress(LONG) + gzip.compress(words)
    assert len(content) > 1 << 20
    assert _look(storage, "a.json.gz", content) is None
    assert "longer" in (_look(storage, "a.json.gz", content, thorough=True) or "")


def test_the_columns_of_a_first_line_are_counted(storage: Storage) -> None:
    of = {"format": "csv", "options": {"header": True}}
    assert _look(storage, "a.csv", b",".join([b"c"] * 50) + b"\n1\n", **of) is None
    assert "more than 50 columns" in (_look(storage, "b.csv", b",".join([b"c"] * 51) + b"\n1\n", **of) or "")
    assert "columns" in (_look(storage, "c.csv", b"," * 60_000, **of) or "")
    wide = b"a,b\n" + b"," * 21_000 + b"\n1,2\n"
    assert _look(storage, "d.csv", wide, **of) is None
    assert "20,480 columns" in (_look(storage, "d.csv", wide, thorough=True, **of) or "")


def _nested(levels: int) -> pa.DataType:
    kind: pa.DataType = pa.int32()
    for _ in range(levels):
        kind = pa.struct([("a", kind)])
    return kind


def _value(levels: int) -> Any:
    return 1 if levels == 0 else {"a": _value(levels - 1)}


@pytest.mark.parametrize("format", ["parquet", "orc"])
def test_a_footer_with_too_much_in_it_is_found(storage: Storage, format: str) -> None:
    def file(table: pa.Table, **more: Any) -> bytes:
        sink = io.BytesIO()
        if format == "parquet":
            pq.write_table(table, sink, **more)
        else:
            orc.write_table(table, sink, compression="zstd")
        return sink.getvalue()

    of: dict[str, Any] = {"format": format}
    assert _look(storage, "a", file(pa.table({f"c{n}": [1] for n in range(50)})), **of) is None
    assert "51 columns" in (
        _look(storage, "b", file(pa.table({f"c{n}": [1] for n in range(51)})), **of) or ""
    )
    deep = [file(pa.table({"c": pa.array([_value(n)], _nested(n))})) for n in (19, 20)]
    assert _look(storage, "c", deep[0], **of) is None
    assert "21 levels" in (_look(storage, "d", deep[1], **of) or "")
    long = {f"{'c' * 4_000}{n}": [1] for n in range(20)}
    assert "footer" in (_look(storage, "e", file(pa.table(long)), **of) or "")
    assert _look(storage, "f", b"nothing of this kind", **of) is None
    assert _look(storage, "g", b"PAR1" * 20, **of) is None


def test_a_row_group_that_expands_too_far_is_found(storage: Storage) -> None:
    sink = io.BytesIO()
    table = pa.table({"c": ["x" * 1_000_000] * 5})
    pq.write_table(table, sink, compression="zstd", use_dictionary=False, write_statistics=False)
    assert "times that" in (_look(storage, "a", sink.getvalue(), format="parquet") or "")


class _CountingFile(io.BytesIO):
    taken = 0

    def read(self, size: int | None = -1, /) -> bytes:
        found = super().read(size)
        self.taken += len(found)
        return found


def test_of_a_large_ordinary_file_little_is_read() -> None:
    file = _CountingFile(LINE * 2_000_000)
    assert not is_longer(file, len(file.getvalue()), [b"\n", b"\r"], 1 << 22)
    assert file.taken < 1_000_000


@pytest.mark.parametrize("limit", [10, 64, 1_000])
@pytest.mark.parametrize("end", [b"\n", b"||", b"\n\x00"])
def test_each_length_around_the_limit_is_told_apart(limit: int, end: bytes) -> None:
    for length in range(limit - 3 * len(end), limit + 3 * len(end)):
        for before in range(0, 2 * limit, max(limit // 7, 1)):
            text = (b"a" * 3 + end) * before + b"x" * length + end + b"b" * 3
            size = max(limit // 2, 1)
            pieces = [text[at : at + size] for at in range(0, len(text), size)]
            over = any_longer(pieces, [end], limit)
            # A separator belongs to the record before it or behind it.
            if length > limit + len(end):
                assert over
            if length < limit - len(end):
                assert not over
            if len(text) > limit:
                assert is_longer(io.BytesIO(text), len(text), [end], limit) or length <= limit + len(end)
