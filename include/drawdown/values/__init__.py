"""Values of a spec with a form of their own (durations, paths, DDL), and how a check reports a problem."""
