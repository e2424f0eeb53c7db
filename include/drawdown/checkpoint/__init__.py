"""Spark's checkpoint read as files: offsets, commits, metadata, seen files; needs no Spark session."""

from drawdown.checkpoint.checkpoint_files import CheckpointFiles
from drawdown.checkpoint.checksums import checksum_path, delete_with_checksum, replace_with_checksum
from drawdown.checkpoint.fault import CheckpointFault
from drawdown.checkpoint.file_log import SINK_FIELDS, SOURCE_FIELDS, FileLog, SeenFile, log_offset, plain_path
from drawdown.checkpoint.offset_log import OffsetLogEntry
from drawdown.checkpoint.plan_entry import plan_batch
from drawdown.checkpoint.state_files import StateFiles, StoreFiles, StoreId
from drawdown.checkpoint.verify import MARKS, RESTORING, REWINDING, Verification, verify_file_log

__all__ = [
    "MARKS",
    "RESTORING",
    "REWINDING",
    "SINK_FIELDS",
    "SOURCE_FIELDS",
    "CheckpointFault",
    "CheckpointFiles",
    "FileLog",
    "OffsetLogEntry",
    "SeenFile",
    "StateFiles",
    "StoreFiles",
    "StoreId",
    "Verification",
    "checksum_path",
    "delete_with_checksum",
    "log_offset",
    "plain_path",
    "plan_batch",
    "replace_with_checksum",
    "verify_file_log",
]
