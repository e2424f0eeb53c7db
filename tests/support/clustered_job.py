"""A drain on a standalone cluster: clustered_job.py PROJECT PIPELINE MASTER."""

from __future__ import annotations

import sys
from pathlib import Path

from drawdown.application import Application, exit_code
from drawdown.machine.archive import driver_class_path
from drawdown.metastore import Metastore
from drawdown.reporting import LogLines
from drawdown.spec import load_pipeline, load_project
from tests.support.spark import ROOT
from tests.support.standalone import MEMORY

if __name__ == "__main__":
    root, name, master = sys.argv[1:]
    project = load_project(Path(root))
    jars = driver_class_path(ROOT)
    conf = {
        "spark.master": master,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraClassPath": jars,
        "spark.executor.extraClassPath": jars,
        "spark.executor.memory": MEMORY,
    }
    with Metastore.open(project.metastore_url) as metastore:
        reports = Application(project, metastore, conf, watcher=LogLines()).drain_all(
            [load_pipeline(project, name)]
        )
    sys.exit(exit_code(reports))
