"""Sinks: a folder for each kind, with its `kind` (what a spec may say), `stage` (with Spark) and `publish`.

registry.py lists the kinds; stage.py opens the stage of a pipeline's sink, targets.py its target.
"""
