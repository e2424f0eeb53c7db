"""`arrivals:` of a file source: who reports new files."""

from __future__ import annotations

from drawdown.values.duration import Duration, PositiveDuration
from drawdown.values.kafka_names import Topic
from drawdown.values.model import Name, SpecModel


class Notifications(SpecModel):
    """A Kafka topic with the notifications of a bucket; all files are listed every ``list_every``."""

    topic: Topic
    broker: Name = "default"
    list_every: PositiveDuration = Duration.parse("1 day")
