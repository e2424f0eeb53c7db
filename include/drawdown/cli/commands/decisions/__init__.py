"""Commands for a person's decisions about rows: held slices, the quarantine, a rebuild's output."""
