"""Reads the files of a run's next batch one by one, so that one that ends Spark's JVM is known by its name.

Only after a run that died with the JVM. Spark repeats a planned batch as a whole, so its files are read
beside the query, without the transform, into nothing. Before each read the run record says which it is: the
record outlives the process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from drawdown.checkpoint import log_offset
from drawdown.metastore.records import Run
from drawdown.plan.deaths import dead_runs, ends_spark, lacks_memory, reads_alone
from drawdown.plan_verdicts import PlanVerdict
from drawdown.query.query import Query
from drawdown.sources.files.reader import read_some_files
from drawdown.sources.files.spark_trouble import FileTrouble, named
from drawdown.spark.gateway import is_cut_off, is_stopping
from drawdown.storage import Storage
from drawdown.values.text import counted, sized
from drawdown.workspace import Generation

_READING = "source.read-alone"
_MOST_READS = 200
"""A batch of more files is read in so many parts."""


@dataclass(frozen=True)
class SuspectFiles:
    """The files of the next batch of a suspected pipeline.

    Attributes:
        note: replaces what the run record says about the read that follows; None: nothing.
        tell: called with what was found, for the run's notices.
    """

    session: SparkSession
    generation: Generation
    query: Query
    trouble: FileTrouble
    note: Callable[[dict[str, Any] | None], None]
    tell: Callable[[PlanVerdict], None]

    def read(self) -> None:
        """Read them, if the run before died.

        Raises:
            MachineError: ``source.ends-spark``: one of them ends the JVM, now or in the run before.
        """
        pipeline, metastore = self.generation.pipeline, self.generation.metastore
        if not reads_alone(metastore, pipeline.name):
            return
        told = _noted(dead_runs(metastore, pipeline.name))
        count = 0
        for source, paths in self._files():
            if told is not None and told["source"] == source and set(told["paths"]) <= set(paths):
                raise self._ends_spark(source, told["paths"])
            size = -(-len(paths) // _MOST_READS) or 1
            for at in range(0, len(paths), size):
                self._read_alone(source, paths[at : at + size])
            count += len(paths)
        self.note(None)
        read = (
            f"{counted(count, 'file')} of its next batch could be read alone"
            if count
            else "it reads no files"
        )
        self.tell(
            PlanVerdict(
                "warning",
                "spark.suspect",
                f"the last run of {pipeline.name} ended Spark's JVM: {read}, so it is the query, its state or"
                " another source",
                do="if it ends again: raise `driver_memory` of the cluster, bound the batch"
                " (`maxFilesPerTrigger`, `maxOffsetsPerTrigger`), or look at the transform",
                about=pipeline.name,
            )
        )

    def _files(self) -> Iterator[tuple[str, list[str]]]:
        """Yield each source's files: of a batch that is planned and not committed, else the new ones."""
        files = self.generation.files
        planned, committed = files.last_offset_batch(), files.last_commit_batch()
        for folder, name in enumerate(dict.fromkeys(self.query.source_order)):
            source = name.split("@")[0]
            if source not in self.trouble.looked or "@" in name:
                continue
            paths = sorted(self.trouble.looked[source])
            if planned is not None and planned != committed:
                number = self.query.source_order.index(name)
                before = files.offsets(committed).offsets[number] if committed is not None else None
                start, end = log_offset(before), log_offset(files.offsets(planned).offsets[number])
                seen = (
                    files.source_files(folder, 0 if start is None else start + 1, end)
                    if end is not None
                    else []
                )
                paths = [file.path for file in seen]
            unread = set(self.trouble.unread.get(source, ()))
            yield source, [path for path in paths if path not in unread]

    def _read_alone(self, source: str, paths: Sequence[str]) -> None:
        self.note({"id": _READING, "what": f"reading {named(paths)} alone", "about": source,
                   "do": "", "source": source, "paths": list(paths)})  # fmt: skip
        inferred: StructType | None = self.query.inferred.get(source)
        try:
            frame = read_some_files(
                self.session, self.generation.project, self.generation.pipeline, source, paths, inferred
            )
            frame.write.format("noop").mode("overwrite").save()
        except (PySparkException, Py4JError, OSError) as cause:
            if is_cut_off(cause) or lacks_memory(str(cause)) or is_stopping(self.session):
                raise self._ends_spark(source, paths) from None
            # Whatever else is wrong with a file, its batch says it.

    def _ends_spark(self, source: str, paths: Sequence[str]) -> Exception:
        pipeline = self.generation.pipeline
        storage = Storage.of_source(self.generation.project, pipeline.sources[source])
        infos = [
            info for path in islice(paths, _MOST_READS) if (info := storage.info(storage.relative(path)))
        ]
        size = sized(sum(info.size for info in infos))
        files = f"{paths[0]} ({size})" if len(paths) == 1 else f"one of {named(paths)} ({size} together)"
        return ends_spark(pipeline.name, source, files, storage.relative(paths[0]))


def _noted(dead: Sequence[Run]) -> dict[str, Any] | None:
    """Return which read the newest dead run was in, as it noted it."""
    # A run that could say how it ended has named the file; it is tried again.
    notices = dead[0].notices if dead and dead[0].error is None else []
    return next((each for each in notices if each["id"] == _READING), None)
