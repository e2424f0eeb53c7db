"""The boundary of a source, where every row is counted: malformed, future, against a rule, fed."""
