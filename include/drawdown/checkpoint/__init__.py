"""Spark's checkpoint read as files: offsets, commits, metadata, seen files; needs no Spark session."""

from drawdown.checkpoint.checkpoint_files import CheckpointFiles
from drawdown.checkpoint.file_log import SINK_FIELDS, FileLog, SeenFile, log_offset, plain_path
from drawdown.checkpoint.offset_log import OffsetLogEntry

__all__ = [
    "SINK_FIELDS",
    "CheckpointFiles",
    "FileLog",
    "OffsetLogEntry",
    "SeenFile",
    "log_offset",
    "plain_path",
]
