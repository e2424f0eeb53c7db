"""Rows that were set aside: what they are, replaying those that pass now, dropping the rest."""
