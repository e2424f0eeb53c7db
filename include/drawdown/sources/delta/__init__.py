"""Delta tables as a source: what waits, which versions a replay reads, and the frame of its rows."""
