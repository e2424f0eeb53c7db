"""Rules about all pipelines of a project together: who waits for whom, who writes where."""
