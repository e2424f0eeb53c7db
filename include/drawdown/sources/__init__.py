"""Sources: one folder a kind, with its backlog and losses (without Spark) and its reader (with it)."""
