"""Files as a source: what is listed, what waits, what has changed, and the frame that reads them."""
