"""Alerts: somebody is told when the state of a pipeline changes, and when that is over. Never twice.

Reminders, routing and silences are those of Alertmanager (docs/metrics.md).
"""
