"""A replay: one closed event-time interval, computed again and put in place of the present rows."""
