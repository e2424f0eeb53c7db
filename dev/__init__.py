"""What only this repository needs, not its users' projects: set-up, locks, a local Airflow, the demo."""
