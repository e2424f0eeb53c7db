"""The query of a pipeline, the same for all runs: sources, boundaries, watermarks, carriers, transform."""
