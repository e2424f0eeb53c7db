"""Delta tables as a source: the backlog, the version that a replay reads, and the frame of the rows."""
