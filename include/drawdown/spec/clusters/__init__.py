"""Cluster profiles of project.yaml: one model per kind."""
