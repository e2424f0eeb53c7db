"""Reads spec files: YAML with line numbers, environment variables, errors with a remedy."""
