"""Jobs whose driver runs elsewhere, through providers of Airflow that are installed only where needed."""
