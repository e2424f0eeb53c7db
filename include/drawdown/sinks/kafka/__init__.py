"""Kafka as a sink: rows are staged as files and sent in transactions, each with its marker in a ledger."""
