"""Delta as a sink: files are staged beside the table and published by one commit."""
