"""Recovery commands: find faults in a checkpoint and go back. Needs no Spark."""
