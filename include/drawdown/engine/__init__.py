"""The part that runs on Spark: sessions, sources, transforms, sinks and the drain."""
