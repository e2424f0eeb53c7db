"""A replay: recomputes one closed event-time interval and replaces its rows."""
