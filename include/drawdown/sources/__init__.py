"""Sources: a folder for each kind: its `kind` (what a spec may say), `backlog` (without Spark), `reader`.

registry.py lists the kinds; reader.py opens a pipeline's sources.
"""
