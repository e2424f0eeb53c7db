"""Sinks: one folder a kind, with `stage` (on Spark) and `publish` (without it).

registry.py knows every stage, targets.py every publish.
"""
