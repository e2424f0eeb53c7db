"""Test cases of pipelines: waves of input, one run each, and the rows expected after each."""
