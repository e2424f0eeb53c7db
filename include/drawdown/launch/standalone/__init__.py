"""A standalone cluster for one run: its folder, its supervisor, and the reaper of abandoned clusters."""
