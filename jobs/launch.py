"""What EMR and Dataproc start on a machine of their YARN cluster: the same command as on Airflow's machine.

    python jobs/launch.py HOME ARGUMENTS

Submits with the Spark of the project in HOME, whatever Spark the machine has; ARGUMENTS are spark-submit's.
Variables in HOME/.env (NAME=value, a line each; mode 0600) become the driver's environment. It is run by any
Python, before an environment is chosen: standard library only. Exit code: spark-submit's.
"""

import os
import sys
from pathlib import Path

# Those of the machine's own Spark would mix with this one.
FOREIGN = ("SPARK_", "PYSPARK_", "PYTHON")


def environment(home: Path) -> dict[str, str]:
    """The machine's, without its Spark's, with the project's."""
    found = {key: value for key, value in os.environ.items() if not key.startswith(FOREIGN)}
    found.setdefault("HADOOP_CONF_DIR", "/etc/hadoop/conf")
    if (home / ".env").exists():
        lines = (line.strip() for line in (home / ".env").read_text().splitlines())
        found |= dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
    return found | {"PYTHONPATH": str(home / "include")}


home, arguments = Path(sys.argv[1]), sys.argv[2:]
python = str(home / ".venv" / "bin" / "python")
os.execve(python, [python, "-m", "drawdown.launch.submit", *arguments], environment(home))  # noqa: S606
