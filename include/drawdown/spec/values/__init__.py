"""Values of a spec that have a form of their own: durations, intervals, paths, patterns, DDL."""
