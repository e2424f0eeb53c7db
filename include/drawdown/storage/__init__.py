"""One fsspec-based way to files: local, s3, gs, abfs, hdfs."""

from drawdown.spec.values.globs import Glob
from drawdown.storage.storage import FileInfo, Storage

__all__ = ["FileInfo", "Glob", "Storage"]
