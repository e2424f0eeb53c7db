"""Changes to sink tables: the protocol that every sink implements, and the data that each commit carries."""
