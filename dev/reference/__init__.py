"""Parts of the reference pages: values in words, and what kinds of sources and sinks have."""
