"""What the metastore does, one module a kind of record; each function works in the caller's transaction."""
