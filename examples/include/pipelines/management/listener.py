"""Hears of this pipeline's query and of no other, after each batch is committed."""

import logging

from pyspark.sql.streaming.listener import (
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

log = logging.getLogger(__name__)


class Listener(StreamingQueryListener):
    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        log.info("%s started", event.name)

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        log.info("batch %s read %s rows", event.progress.batchId, event.progress.numInputRows)

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        log.info("ended: %s", event.exception or "drained")
