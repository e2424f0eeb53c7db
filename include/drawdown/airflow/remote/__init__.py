"""Jobs whose driver runs elsewhere, through Airflow providers that are installed only where needed."""
