"""The data behind the page of one pipeline: its runs as series, what waits, expectations, query, spec."""
