"""Formats command output: tables and sentences for people, plain values for JSON."""
