"""Sinks: one folder a kind: its `kind` (what a spec may say), `stage` (on Spark) and `publish` (without).

registry.py lists the kinds; stage.py opens the stage of a pipeline's sink, targets.py its target.
"""
