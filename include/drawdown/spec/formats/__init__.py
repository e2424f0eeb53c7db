"""What the options of a source or sink may say, by format."""
