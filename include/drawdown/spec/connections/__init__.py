"""Brokers and databases of project.yaml."""
