"""Quarantined rows: reading them, replaying those that pass now, dropping the rest."""
