"""Recovery by command: what is wrong with a checkpoint, and the ways back. Needs no Spark."""
