"""Sinks for a developer's eyes and for tests: console and memory."""
