"""Temporary servers for tests: a Kafka broker, a PostgreSQL database."""
