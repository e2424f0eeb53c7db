"""What a query keeps in state, told from its analysed plan: operators, keys, the origin of columns."""
