"""Requests to the services that run a driver elsewhere: one module per service."""
