"""Days of flights for the project's storage and broker: the first by `make up`, one by each `make day`."""

from __future__ import annotations

from pathlib import Path

from dev.airflow.home import LocalAirflow
from dev.demo.data import Day, days
from dev.demo.delivery import Delivery
from dev.demo.line import GROUP, PIPELINES
from drawdown.errors import MachineError
from drawdown.spec import load_project


class Arrivals:
    """What has arrived at a project, and what comes next.

    Args:
        root: the project; its examples read what is delivered.
        broker: its address.
    """

    def __init__(self, root: Path, broker: str) -> None:
        project = load_project(root)
        folder = project.root / "include" / "pipelines"
        self._missing = [name for name in PIPELINES if not (folder / name).is_dir()]
        self._delivery = Delivery(Path(project.storage_root), broker)
        self._storage_root = project.storage_root

    @property
    def wanted(self) -> bool:
        """Whether the examples are there and nothing has ever arrived for them."""
        return not self._refusal() and not any(self._delivery.has(day) for day in days())

    def next(self, airflow: LocalAirflow) -> Day | None:
        """Deliver the next day and start a run of the examples; None: all have been delivered.

        Raises:
            MachineError: the project has no examples, its storage is no folder, or Airflow has no such DAG.
            SourceError: the broker did not take the messages.
        """
        if refusal := self._refusal():
            raise MachineError(
                "demo.no-examples",
                refusal,
                where=str(self._storage_root),
                do="deliver data of your own; the examples are shown by `make demo`, in a folder of its own",
            )
        day = next((each for each in days() if not self._delivery.has(each)), None)
        if day is not None:
            self._delivery.prepare()
            self._delivery.deliver(day)
            airflow.unpause(GROUP)
            airflow.trigger(GROUP)
        return day

    def _refusal(self) -> str:
        if self._missing:
            return (
                f"the project has no pipeline {', '.join(self._missing)}, which the days of flights are for"
            )
        if "://" in self._storage_root:
            return "the storage is no folder of this machine, and the days of flights are files"
        return ""
