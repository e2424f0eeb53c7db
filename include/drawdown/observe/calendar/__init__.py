"""The calendar of a pipeline with `replay:`: its intervals, and what became of each, from records alone."""
