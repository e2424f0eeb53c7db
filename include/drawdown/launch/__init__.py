"""Where Spark applications run and how they are submitted, watched and ended."""
