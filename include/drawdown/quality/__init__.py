"""Data quality: audits a slice and reports the findings."""
