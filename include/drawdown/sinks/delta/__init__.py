"""Delta as a sink: files are written beside the table and published by one commit."""
