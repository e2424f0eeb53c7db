"""Values with their own syntax in a spec (durations, paths, DDL), and how a check reports a problem."""
