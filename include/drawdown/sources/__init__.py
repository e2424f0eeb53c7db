"""Sources: one folder a kind: its `kind` (what a spec may say), `backlog` (without Spark), `reader` (with).

registry.py lists the kinds; reader.py opens a pipeline's sources.
"""
