"""What this machine must have and run: Java, jars, the class archive, a local broker, a local Airflow."""
