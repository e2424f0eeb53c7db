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

from drawdown.sources.files import footers
from drawdown.sources.files.oversized import oversized
from drawdown.sources.files.record_length import any_longer, is_longer
from drawdown.sources.files.schema_drift import drift_of
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
    assert "more than 50 columns" in (
        _look(storage, "b", file(pa.table({f"c{n}": [1] for n in range(51)})), **of) or ""
    )
    deep = [file(pa.table({"c": pa.array([_value(n)], _nested(n))})) for n in (19, 20)]
    assert _look(storage, "c", deep[0], **of) is None
    assert "more than 20 levels" in (_look(storage, "d", deep[1], **of) or "")
    long = {f"{'c' * 4_000}{n}": [1] for n in range(20)}
    assert "footer" in (_look(storage, "e", file(pa.table(long)), **of) or "")
    assert _look(storage, "f", b"nothing of this kind", **of) is None
    assert _look(storage, "g", b"PAR1" * 20, **of) is None


def test_a_row_group_that_expands_too_far_is_found(storage: Storage) -> None:
    sink = io.BytesIO()
    table = pa.table({"c": ["x" * 1_000_000] * 5})
    pq.write_table(table, sink, compression="zstd", use_dictionary=False, write_statistics=False)
    assert "times that" in (_look(storage, "a", sink.getvalue(), format="parquet") or "")


@pytest.mark.parametrize("codec", ["uncompressed", "zlib", "snappy", "lz4", "zstd"])
def test_columns_are_counted_through_each_compression_of_orc(tmp_path: Path, codec: str) -> None:
    for columns, expected in ((50, None), (51, "it has more than 50 columns (`columns`)")):
        sink = io.BytesIO()
        orc.write_table(pa.table({f"c{n}": [1] for n in range(columns)}), sink, compression=codec)
        assert _look(Storage(str(tmp_path)), "a", sink.getvalue(), format="orc") == expected
        cut = sink.getvalue()[: sink.tell() // 2]  # the batch names it
        assert _look(Storage(str(tmp_path)), "a", cut, format="orc") is None


def _number(value: int) -> bytes:
    found = b""
    while value > 127:
        found, value = found + bytes([value & 127 | 128]), value >> 7
    return found + bytes([value])


def _orc(types: bytes, compression: int = 0, last: bytes = b"\xc2\xf4\x03\x03ORC") -> bytes:
    """A file of ORC without rows; the mark comes last in its postscript, or where `last` has it."""
    script = b"\x08" + _number(len(types)) + b"\x10" + bytes([compression]) + last
    return b"ORC" + types + script + bytes([len(script)])


def _struct(*children: int) -> bytes:
    of = b"\x08\x0c" + b"".join(b"\x10" + _number(child) for child in children)
    return b"\x22" + _number(len(of)) + of


DEEP = b"".join(_struct(number + 1) for number in range(30)) + _struct()
GROUP = _number(200 << 3 | 3) + _number(200 << 3 | 4)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (_orc(DEEP), "more than 20 levels"),
        (_orc(GROUP + DEEP), "cannot be counted"),
        (_orc(_struct(1, 1) + _struct()), "cannot be counted"),
        (_orc(_struct(1 << 32 | 1) + _struct()), "cannot be counted"),
        (_orc(_number(1 << 32 | 4 << 3 | 2) + DEEP[1:]), "cannot be counted"),
        (_orc(DEEP, last=b"\xc2\xf4\x03\x03ORC\x30\x09"), "more than 20 levels"),
        (_orc(DEEP, 3, b"\x18\x80\x20\xc2\xf4\x03\x03ORC"), "compressed with LZO"),
        (_orc(_struct(1) + b"\x22\x7f"), "cannot be counted"),
    ],
    ids=["deep", "group", "twice", "wide-child", "wide-key", "mark-at-start", "lzo", "cut"],
)
def test_a_footer_of_orc_that_hides_its_columns_is_beyond_the_limits(
    tmp_path: Path, content: bytes, said: str
) -> None:
    assert said in (_look(Storage(str(tmp_path)), "a", content, format="orc") or "")


def _element(children: int | None = None, more: bytes = b"") -> bytes:
    kind = b"\x15\x02\x25\x00" if children is None else b"\x35\x00"  # INT32 required, or required
    end = b"" if children is None else b"\x15" + _number(children << 1)
    return kind + b"\x18\x01a" + end + more + b"\x00"


def _parquet(*schemas: list[bytes], before: bytes = b"") -> bytes:
    footer = b"\x15\x02" + before
    for schema in schemas:
        footer += b"\x09\x04\xfc" + _number(len(schema)) + b"".join(schema)
    footer += b"\x06\x06\x00\x09\x08\x0c\x00"
    return b"PAR1" + footer + struct.pack("<I", len(footer)) + b"PAR1"


FLAT = [_element(1), _element()]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (_parquet([_element(1)] * 30 + [_element()]), "more than 20 levels"),
        (_parquet(FLAT, [_element(1)] * 3_000 + [_element()]), "cannot be read"),
        (_parquet(FLAT, [_element(60)] + [_element()] * 60), "more than 50 columns"),
        (
            _parquet([_element(1)] + [_element(1, b"\x06\x0a\x00")] * 30 + [_element()]),
            "more than 20 levels",
        ),
        (_parquet(FLAT, before=b"\x09\xc8\x01" + b"\x19" * 30 + b"\x03"), "cannot be counted"),
        (_parquet([_element(1), b"\x05\x8a\x80\x08\x02" + _element()]), "cannot be counted"),
        (b"PAR1\x00\x00\x00\x00PAR1", "cannot be counted"),
        (b"PAR1" + b"\xff" * 100 + b"\x64\x00\x00\x00PAR1", "cannot be counted"),
    ],
    ids=["deep", "two-schemas", "two-flat", "i64", "unknown", "wide-number", "empty", "garbage"],
)
def test_a_footer_of_parquet_that_hides_its_columns_is_beyond_the_limits(
    tmp_path: Path, content: bytes, said: str
) -> None:
    storage = Storage(str(tmp_path))
    assert _look(storage, "flat", _parquet(FLAT), format="parquet") is None
    assert said in (_look(storage, "a", content, format="parquet") or "")
    info = storage.info("a")
    assert info is not None
    if "cannot" in said:
        assert (
            drift_of(storage, Source(format="parquet", path="a", schema="a INT"), info, {"a": "int"}) is None
        )


@pytest.mark.parametrize("each", [b"\x00", b"\x15\x02\x15\x02\x00", b"\x19\xf1\xff\x07" + b"\x01" * 9])
def test_counting_a_footer_stops_at_the_limits(each: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = 0
    byte = footers._Thrift._byte

    def counted(self: Any) -> int:
        nonlocal taken
        taken += 1
        return byte(self)

    monkeypatch.setattr(footers._Thrift, "_byte", counted)
    content = _parquet([each] * 100_000)
    most = footers.Most(1 << 30, columns=50, levels=20)
    found = footers.parquet_shape(io.BytesIO(content), len(content), most)
    assert found is not None
    assert found.hidden or found.columns == 51
    assert taken < 20_000


def test_another_element_with_a_longer_name_ends_no_record_of_xml(tmp_path: Path) -> None:
    of: dict[str, Any] = {"format": "xml", "options": {"rowTag": "r"}}
    storage = Storage(str(tmp_path))
    long = b"<r>" + (b"x" * 1_000 + b"<rz/>") * 100 + b"</r>"
    assert "longer" in (_look(storage, "a", b"<r></r>" + long, **of) or "")
    for start in (b"<r>", b"<r a='b'>", b"<r\n>", b"<r/>"):
        assert _look(storage, "c", (start + b"x" * 1_000) * 100, **of) is None


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
