"""Files as a source: the listing, the backlog, changed files, and the frame that reads them."""
