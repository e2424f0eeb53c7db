"""Rules about the analysed plan: what Spark allows, what surprises, what is refused; one module per topic."""
