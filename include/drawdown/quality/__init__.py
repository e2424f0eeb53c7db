"""Data quality: the audit of a slice, and what it found."""
