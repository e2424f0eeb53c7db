"""Airflow reads its settings when it is first imported: give it a home that is no one's."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

os.environ.setdefault("AIRFLOW_HOME", tempfile.mkdtemp(prefix="drawdown-tests-airflow-"))
os.environ.setdefault("AIRFLOW__CORE__LOAD_EXAMPLES", "False")
# A DAG with a timetable of our own is kept by an Airflow that has the plugin.
os.environ.setdefault("AIRFLOW__CORE__PLUGINS_FOLDER", str(Path(__file__).parents[2] / "plugins"))
