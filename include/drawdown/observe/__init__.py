"""What others see of runs: figures, metrics, lineage, alerts. Nothing here may fail or delay a run."""
