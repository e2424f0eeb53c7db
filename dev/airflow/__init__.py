"""A local Airflow for development, the demo and tests: started here, gone afterwards."""
