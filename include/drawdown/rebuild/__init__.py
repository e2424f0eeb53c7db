"""A rebuild: a new generation beside the live one, compared, then swapped in, discarded or rolled back."""
