"""The user's own function or class as a sink."""
