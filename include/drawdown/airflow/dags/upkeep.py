"""The DAG `drawdown__upkeep`: one task that limits what the runs of all pipelines leave behind.

All pipelines share it, so that 1,000 of them are parsed in time. It starts no Spark.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import DAG

from drawdown.airflow.dag_tags import dag_tags
from drawdown.airflow.logins import look_up
from drawdown.airflow.run_records import open_metastore
from drawdown.airflow.schedules import by_the_clock
from drawdown.airflow.task_arguments import of_tasks
from drawdown.airflow.tasks.project_operators import ProjectOperator
from drawdown.airflow.tasks.task_failures import WorthRetrying, plainly
from drawdown.credentials import with_logins
from drawdown.errors import DrawdownError
from drawdown.spec import Project, iter_pipelines, load_project
from drawdown.values.dag_ids import UPKEEP
from drawdown.workspace import Workspace

if TYPE_CHECKING:
    from airflow.sdk import Context


_DOC = """
### Upkeep
Every run leaves small files, old versions of tables and records behind. This DAG compacts the tables, and
removes what is no longer needed. Rows that wait for an audit or a decision stay, and so does what a lagging
pipeline, a replay or a roll back still has to read.

- A pipeline with an active run is skipped until the next time; one that fails does not stop the others.
- `upkeep:` of include/project.yaml says when, and how long files and records stay.
- By command: `drawdown upkeep --all`; with `--dry-run` it only says what it would do.
"""


class UpkeepOperator(ProjectOperator):
    """Tidies up all pipelines, then fails if one of them could not be tidied up or read."""

    @plainly
    def execute(self, context: Context) -> dict[str, Any]:
        from drawdown.application import new_run_id
        from drawdown.launch.commands.reaper import end_overdue
        from drawdown.launch.standalone.reaper import reap
        from drawdown.observe.record import record
        from drawdown.upkeep import tidy_all
        from drawdown.upkeep.left_uploads import remove_left_uploads
        from drawdown.upkeep.leftovers import tidy_machine
        from drawdown.upkeep.removed_pipelines import removed_pipelines

        project, ti = load_project(Path(self.project_root)), context["ti"]
        origin = {"dag_id": ti.dag_id, "dag_run_id": ti.run_id, "try_number": ti.try_number}
        there = list(iter_pipelines(project))
        broken = [str(each) for each in there if isinstance(each, DrawdownError)]
        pipelines = [each for each in there if not isinstance(each, DrawdownError)]
        # Even without a pipeline, the storages' keys.
        project = with_logins(project, look_up(project, pipelines))
        removed = {"files": 0, "bytes": 0, "records": 0}
        with open_metastore(self.project_root) as metastore:
            for done in tidy_all(Workspace(project, metastore), pipelines, origin, new_run_id):
                self.log.info(
                    "%s: %s", done.pipeline, "; ".join(filter(None, (done.said, *done.notes))) or "nothing"
                )
                removed["files"] += done.files
                removed["bytes"] += done.bytes
                removed["records"] += done.rows
                if done.error is not None:
                    broken.append(f"{done.pipeline}: {done.error}")
            record(Workspace(project, metastore), [each.name for each in pipelines])
            for left in removed_pipelines(Workspace(project, metastore)):
                self.log.warning("%s", left)
            for ended in end_overdue(project, metastore):
                self.log.warning("%s", ended.sentence)
                if not ended.gone:
                    broken.append(ended.sentence)
        others = (*tidy_machine(project, dry=False), *reap(project), *remove_left_uploads(project, dry=False))
        for sentence in others:
            self.log.info("%s", sentence)
        if broken:
            raise WorthRetrying("\n".join(broken))
        return removed


def upkeep_dag(project: Project) -> DAG:
    """Return the DAG that `upkeep:` of project.yaml schedules."""
    dag = DAG(
        UPKEEP,
        description="Compact tables; remove files and records that are no longer needed",
        schedule=by_the_clock(project.upkeep.schedule),
        catchup=False,
        max_active_runs=1,
        tags=dag_tags(),
        doc_md=_DOC,
    )
    UpkeepOperator(
        task_id="upkeep",
        project_root=str(project.root),
        **{**of_tasks(project.airflow), "execution_timeout": project.airflow.execution_timeout.delta},
        dag=dag,
    )
    return dag
