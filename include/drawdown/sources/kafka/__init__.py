"""Kafka as a source: what waits, which offsets are lost, and the frame that reads its records."""
