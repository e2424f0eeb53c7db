"""Kafka as a source: the backlog, lost offsets, and the frame that reads the records."""
