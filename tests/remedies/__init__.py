"""The test of remedies: each state that an error stands for is made, and its `do:` is executed as printed."""
