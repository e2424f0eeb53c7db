"""`arrivals:` of a file source: who reports new files."""

from __future__ import annotations

from pydantic import Field

from drawdown.values.duration import Duration, PositiveDuration
from drawdown.values.model import Name, SpecModel


class Notifications(SpecModel):
    """A Kafka topic with the notifications of a bucket; all files are listed every ``list_every``."""

    topic: str = Field(pattern=r"^[A-Za-z0-9._-]{1,249}$")
    broker: Name = "default"
    list_every: PositiveDuration = Duration.parse("1 day")
