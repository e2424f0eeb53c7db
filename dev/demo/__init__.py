"""The demo: three days of real flights through a real broker, a real Airflow and Spark, then checked."""
