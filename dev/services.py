"""`make up`, `make day` and `make down`: the project's Airflow and broker in the background, until stopped.

The first ``up`` delivers a day of flights and starts a run of the examples, so that there is something to
see; ``day`` delivers the next. ``down`` needs nothing but the standard library, so it works when the
environment is gone.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from dev.airflow.home import LocalAirflow, running_airflow, stop_airflow
from drawdown.errors import DrawdownError, MachineError
from drawdown.local_services import note_services
from drawdown.testing.servers.kafka import KafkaServer

if TYPE_CHECKING:
    from dev.demo.arrivals import Arrivals

ROOT = Path(__file__).resolve().parents[1]
_STATE = ".drawdown"


def up(root: Path = ROOT) -> None:
    """Start what is not running and print addresses and login. Raises MachineError, SourceError."""
    broker = _broker(root)
    address = broker.running_at()
    if address is None:
        print("Starting the broker ...", flush=True)
        broker.start(detached=True)
        address = broker.bootstrap_servers
    airflow = running_airflow(root, _airflow_home(root))
    if airflow is None:
        upgrade_metastore(root)
        print("Starting Airflow (about 10 s) ...", flush=True)
        environment = {"DRAWDOWN_KAFKA": address}
        airflow = LocalAirflow(root, _airflow_home(root), extra_env=environment, triggerer=True)
        airflow.start(detached=True)
    note_services(root, {"DRAWDOWN_KAFKA": address})
    print(f"Fleet:   {airflow.url}/plugin/drawdown-fleet   user {airflow.user}, password {airflow.password}")
    print(f"Airflow: {airflow.url}")
    print(f"Kafka:   {address}")
    print("Airflow pauses a new DAG: switch it on in the list of DAGs")
    _first_day(root, airflow, address)
    print("Stop both with: make down")


def _first_day(root: Path, airflow: LocalAirflow, address: str) -> None:
    # Imported here and below: `down` has no packages.
    from dev.demo.arrivals import Arrivals

    arrivals = Arrivals(root, address)
    if arrivals.wanted:
        _deliver(arrivals, airflow)


def day(root: Path = ROOT) -> None:
    """Deliver the next day to what ``up`` has started, and start a run. Raises MachineError, SourceError."""
    from dev.demo.arrivals import Arrivals

    address, airflow = _broker(root).running_at(), running_airflow(root, _airflow_home(root))
    if address is None or airflow is None:
        raise MachineError(
            "demo.no-services",
            "Airflow or the broker of this project is not running",
            where=str(root),
            do="start them: make up",
        )
    _deliver(Arrivals(root, address), airflow)


def _deliver(arrivals: Arrivals, airflow: LocalAirflow) -> None:
    from dev.demo.data import DAYS
    from dev.demo.line import GROUP

    arrived = arrivals.next(airflow)
    if arrived is None:
        print(f"All {DAYS} days have been delivered; `make clean` begins again")
        return
    print(f"Flights: day {arrived.number} of {DAYS}, {arrived.date:%d %B %Y}, is delivered; a run has begun:")
    print(f"         {airflow.url}/dags/{GROUP}; the fleet page shows its end in about a minute")
    if arrived.number < DAYS:
        print("The next day comes with: make day")


def upgrade_metastore(root: Path) -> None:
    """Bring the metastore of the project to this program's schema. Raises MachineError."""
    from drawdown.metastore import Metastore
    from drawdown.spec import load_project

    before, now = Metastore.upgrade(load_project(root).metastore_url)
    if before not in (None, now):
        print(f"The metastore has schema {now} now, it had {before}", flush=True)


def down(root: Path = ROOT) -> None:
    """Stop both with everything they started; does nothing when nothing is running."""
    note_services(root, {})
    stop_airflow(_airflow_home(root))
    _broker(root).stop()


def _airflow_home(root: Path) -> Path:
    return root / _STATE / "airflow"


def _broker(root: Path) -> KafkaServer:
    # Its program is that of this checkout, whichever project it is for.
    return KafkaServer(root / _STATE / "kafka", state_dir=ROOT / _STATE)


def main() -> int:
    """``up``, ``day`` or ``down``; prints errors without a trace."""
    try:
        {"up": up, "day": day, "down": down}[sys.argv[1]]()
    except DrawdownError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
