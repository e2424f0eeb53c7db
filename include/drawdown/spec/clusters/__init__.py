"""Cluster profiles of project.yaml: one model a kind."""
