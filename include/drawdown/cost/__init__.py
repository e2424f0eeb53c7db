"""Computes the cost of runs from their records, with exact arithmetic until display."""
