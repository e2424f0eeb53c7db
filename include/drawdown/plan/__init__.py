"""Verdicts before anything runs."""
