"""Python data sources: a class in the pipeline's folder."""
