"""Changes to the tables of sinks: the protocol that every sink implements, and what goes with each commit."""
