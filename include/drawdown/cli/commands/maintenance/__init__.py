"""Commands for data that runs keep: checkpoints, state, records, a pipeline's name."""
