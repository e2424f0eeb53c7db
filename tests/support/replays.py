"""The pipeline that replays are tested on: sums per hour and key, replayed by days."""

from __future__ import annotations

REPLAYED = """
sources:
  events:
    format: json
    path: landing/events
    schema: events.ddl
    watermark: {column: at, delay: 0 seconds}
transform: transform.sql
sink: {format: delta, path: tables/hourly, schema: hourly.ddl, time_column: hour}
state: {partitions: 2}
replay: {interval: 1 day}
"""
