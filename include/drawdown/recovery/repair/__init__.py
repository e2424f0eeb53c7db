"""Finds faults in a checkpoint, reports them, and fixes those that can be fixed without loss."""
