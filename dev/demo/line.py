"""The line under test: a broker, an Airflow and a project of its own; deliver a day, run, wait.

Everything lives in one folder that is emptied first, so the demo never touches a user's storage, metastore
or Airflow. Leaving the context ends every process, whatever happened inside.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path
from types import TracebackType

from dev.airflow.home import FINISHED, LocalAirflow
from dev.demo.delivery import Delivery
from drawdown.errors import BusyError, MachineError
from drawdown.metastore import Metastore
from drawdown.metastore.records import Run
from drawdown.testing.servers.kafka import KafkaServer

GROUP = "nycflights"
PIPELINES = (
    "flights", "weather", "departures_hourly", "flights_enriched", "aircraft_sessions", "flight_weather",
    "route_delays",
)  # fmt: skip

_RUN_SECONDS = 240.0
_POLL_SECONDS = 0.5
_LOG_LINES = 12

TaskStates = Mapping[str, str | None]


@dataclass(frozen=True)
class DagRun:
    """One run of the group's DAG that ended, or whose task failed and waits for a retry.

    Attributes:
        tasks: task id to its last state (success, failed, skipped, upstream_failed).
        seconds: from the trigger until Airflow called it ended.
        runs: the run records it left, by pipeline; none where a pipeline had nothing new.
    """

    run_id: str
    state: str
    tasks: TaskStates
    seconds: float
    runs: Mapping[str, Run]

    @property
    def skipped_spark(self) -> bool:
        """Whether no Spark application was submitted: only the drain submits one, and it was skipped."""
        drains = [state for task, state in self.tasks.items() if task.split(".")[-1] == "drain"]
        return bool(drains) and all(state == "skipped" for state in drains)


class Line:
    """Broker, Airflow, storage and metastore of one demo, in ``home``.

    Args:
        root: the project, with dags/, jobs/ and include/.
        home: emptied first, also of what an earlier demo left there.
    """

    def __init__(self, root: Path, home: Path) -> None:
        self.root = root.resolve()
        self.home = home.resolve()
        self.storage_root = self.home / "storage"
        self.copy = self.home / "delivered"
        self.metastore_url = f"sqlite:///{self.home / 'metastore.db'}"
        self._folder = ExitStack()
        self._processes = ExitStack()

    def __enter__(self) -> Line:
        self._folder.enter_context(_alone(self.home))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._folder:
            self.stop()

    def start_broker(self) -> None:
        """Raises MachineError when it does not start, or its jars are missing."""
        broker = KafkaServer(self.home / "kafka", state_dir=self.root / ".drawdown")
        self.broker = self._processes.enter_context(broker)
        self.delivery = Delivery(self.storage_root, self.broker.bootstrap_servers, self.copy)

    def start_airflow(self) -> None:
        """Start Airflow with the demo's own storage, metastore and broker; the broker comes first."""
        self.airflow = self._processes.enter_context(
            LocalAirflow(self.root, self.home / "airflow", extra_env=self.environment)
        )
        self.airflow.unpause(GROUP)

    def stop(self) -> None:
        """End Airflow and the broker; what they made stays to be looked at."""
        self._processes.close()

    @property
    def environment(self) -> dict[str, str]:
        """What points include/project.yaml at this demo."""
        return {
            "DRAWDOWN_PROJECT": str(self.root),
            "DRAWDOWN_STORAGE": str(self.storage_root),
            "DRAWDOWN_METASTORE": self.metastore_url,
            "DRAWDOWN_KAFKA": self.broker.bootstrap_servers,
        }

    def run(self, watch: Callable[[TaskStates], None] = lambda states: None) -> DagRun:
        """Trigger the DAG through the scheduler and wait for its end, or for a task to fail.

        Args:
            watch: hears the states of the tasks while they change.

        Raises:
            MachineError: it did not end in time.
        """
        started = time.monotonic()
        run_id = self.airflow.trigger(GROUP)
        while (state := self.airflow.state(GROUP, run_id)) not in FINISHED:
            tasks = self.airflow.task_states(GROUP, run_id)
            watch(tasks)
            if "up_for_retry" in tasks.values():
                # The pause before a retry outlasts a lease, and nothing here is expected to fail once.
                break
            if time.monotonic() - started > _RUN_SECONDS:
                under_way = [
                    task for task, task_state in tasks.items() if task_state in ("queued", "running")
                ]
                raise MachineError(
                    "demo.too-slow",
                    f"run {run_id} has not ended after {_RUN_SECONDS:.0f} s, at {', '.join(under_way)}",
                    where=str(self.airflow.home / "logs"),
                    do="read the log of the task that still runs",
                )
            time.sleep(_POLL_SECONDS)
        return DagRun(
            run_id,
            str(state),
            self.airflow.task_states(GROUP, run_id),
            time.monotonic() - started,
            self._records(run_id),
        )

    def failure(self, run: DagRun) -> MachineError:
        """A failed run as an error: what its records say, or else the last words of a failed task."""
        failed = [task for task, state in run.tasks.items() if state in ("failed", "up_for_retry")]
        words = [f"{each.pipeline}: {each.error['what']}" for each in run.runs.values() if each.error]
        if failed and not words:
            log = self.airflow.task_log(GROUP, run.run_id, failed[0]).splitlines()
            words = [line for line in log if "group::" not in line][-_LOG_LINES:]
        headline = f"run {run.run_id} of {GROUP} {run.state}: {', '.join(failed) or dict(run.tasks)}"
        return MachineError(
            "demo.run-failed",
            "\n".join([headline, *words]),
            where=str(self.airflow.home / "logs"),
            do="read the whole log of the task; then run `make demo` again",
        )

    def _records(self, run_id: str) -> dict[str, Run]:
        with Metastore.open(self.metastore_url) as metastore:
            runs = metastore.runs(limit=100)
        mine = [run for run in runs if run.origin.get("dag_run_id") == run_id]
        # Newest first: of several tries the last one counts.
        return {run.pipeline: run for run in reversed(mine)}


@contextmanager
def _alone(home: Path) -> Iterator[None]:
    """The folder, empty and ours as long as the context lasts."""
    home.parent.mkdir(parents=True, exist_ok=True)
    with home.with_name(home.name + ".lock").open("w") as lock:
        try:
            flock(lock, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            raise BusyError(
                "demo.running",
                "another demo is under way",
                where=str(home),
                do="wait for its end, or stop it",
            ) from None
        if home.exists():
            shutil.rmtree(home)
        home.mkdir(mode=0o700)
        yield
