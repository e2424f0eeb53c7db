"""Sinks for development and tests: console and memory."""
