"""Drawdown: Structured Streaming as scheduled batch work."""
