"""What this repository needs and no project does: set-up, locks, a local Airflow, the demo."""
