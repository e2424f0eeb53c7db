"""jobs/launch.py: what EMR and Dataproc start submits with this project's Python and its variables."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_environment_is_the_projects_and_not_the_machines_sparks(tmp_path: Path) -> None:
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text('#!/bin/sh\nenv\necho "arguments: $@"\nexit 7\n')
    python.chmod(0o755)
    (tmp_path / ".env").write_text("# for the driver\nDRAWDOWN_METASTORE=postgresql+psycopg://u:a=b@h/d\n")
    foreign = {"SPARK_HOME": "/usr/lib/spark", "PYSPARK_PYTHON": "python3", "PYTHONPATH": "/usr/lib/spark"}
    done = subprocess.run(
        [sys.executable, ROOT / "jobs" / "launch.py", tmp_path, "--master", "yarn", "job.py", '{"a": "b c"}'],
        env={"PATH": "/usr/bin:/bin", **foreign},
        capture_output=True,
        text=True,
    )
    lines = done.stdout.splitlines()
    assert done.returncode == 7, done.stderr
    assert 'arguments: -m drawdown.launch.submit --master yarn job.py {"a": "b c"}' in lines
    assert "DRAWDOWN_METASTORE=postgresql+psycopg://u:a=b@h/d" in lines
    assert "HADOOP_CONF_DIR=/etc/hadoop/conf" in lines
    assert f"PYTHONPATH={tmp_path}/include" in lines
    assert not any(line.startswith(("SPARK_HOME", "PYSPARK_PYTHON")) for line in lines)
