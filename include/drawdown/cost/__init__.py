"""What runs cost, from what the metastore keeps of them: arithmetic alone, exact until it is shown."""
