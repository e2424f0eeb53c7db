"""The sink of a generation that goes back: what is ahead of the checkpoint, and how it is taken back."""
