"""Servers for tests, started here and gone afterwards: a Kafka broker, a PostgreSQL database."""
