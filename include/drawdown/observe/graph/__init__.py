"""The graph of pipelines and tables: what feeds what, from records alone, and where each is drawn."""
