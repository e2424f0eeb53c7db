"""One fsspec-based way to files: local, s3, gs, abfs, hdfs."""

from drawdown.storage.storage import FileInfo, Storage
from drawdown.values.globs import Glob

__all__ = ["FileInfo", "Glob", "Storage"]
