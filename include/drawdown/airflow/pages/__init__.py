"""Pages in Airflow's own web server."""
