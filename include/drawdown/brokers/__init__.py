"""Kafka brokers without Spark: whether they answer, and which offsets their topics have."""
