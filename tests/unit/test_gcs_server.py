"""The server that stands for Google Cloud Storage does what Drawdown rests on."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.gcs_server import GcsRefusal, GcsServer

pytestmark = pytest.mark.full


def test_what_was_written_is_read_listed_and_deleted(gcs: GcsServer) -> None:
    bucket = gcs.bucket()
    keys = ["tables/a b+c.parquet", "tables/h=1/ü.parquet", "zones.csv"]
    for key in keys:
        gcs.put(bucket, key, key.encode())
    assert [gcs.get(bucket, key).decode() for key in keys] == keys
    assert gcs.keys(bucket) == keys
    assert gcs.keys(bucket, "tables/") == keys[:2]
    gcs.delete(bucket, keys[0])
    with pytest.raises(GcsRefusal, match=r"^404"):
        gcs.get(bucket, keys[0])


def test_of_writers_at_the_same_time_one_creates_the_object(gcs: GcsServer) -> None:
    bucket = gcs.bucket()
    for key in ("commits/0", "commits/1", "commits/2"):
        with ThreadPoolExecutor(32) as pool:
            won = list(pool.map(lambda n, key=key: gcs.put_new(bucket, key, str(n).encode()), range(32)))
        assert won.count(True) == 1
        assert gcs.get(bucket, key) == str(won.index(True)).encode()
