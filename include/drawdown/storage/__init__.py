"""Files anywhere: on a disk, in a bucket of S3 or Google Cloud Storage, or where fsspec reaches.

What correctness rests on stands here alone: put if absent (`Storage.create`), replace as a whole
(`Storage.write_atomic`), listings that no cache answers (docs/object-storage.md).
"""

from drawdown.storage.access import object_options
from drawdown.storage.storage import FileInfo, Storage
from drawdown.values.globs import Glob

__all__ = ["FileInfo", "Glob", "Storage", "object_options"]
