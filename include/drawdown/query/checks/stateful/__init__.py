"""Rules about operators that keep state: joins, windows, deduplication, the user's functions."""
