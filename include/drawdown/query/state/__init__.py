"""What a query keeps in state, read from its analysed plan: operators, keys, the origin of columns."""
