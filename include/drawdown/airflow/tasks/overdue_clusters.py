"""The task `end-overdue-clusters` of `drawdown__freshness`: calls `down` of what no run has taken down.

Its name has a dash, as no pipeline's name. No preflight does this work: a `down` may take minutes.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from drawdown.airflow.run_records import open_metastore
from drawdown.airflow.tasks.project_operators import ProjectOperator
from drawdown.airflow.tasks.task_failures import WorthRetrying, plainly
from drawdown.spec import load_project

if TYPE_CHECKING:
    from airflow.sdk import Context

END = "end-overdue-clusters"


class EndOverdueOperator(ProjectOperator):
    """Ends clusters past their deadline, and tries again those whose `down` has failed.

    It fails while a cluster is not known to be gone, so that Airflow's own alerts tell of it.
    """

    @plainly
    def execute(self, context: Context) -> None:
        from drawdown.fleet.started_clusters import red_clusters
        from drawdown.launch.commands.reaper import end_overdue

        project = load_project(Path(self.project_root))
        with open_metastore(self.project_root) as metastore:
            for ended in end_overdue(project, metastore):
                self.log.warning("%s", ended.sentence)
            left = red_clusters(metastore)
        if left:
            raise WorthRetrying("\n".join(f"{each.sentence}: {each.do}" for each in left))
