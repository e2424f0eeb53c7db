"""Counts every row at a source's boundary: malformed, future, against a rule, fed."""
