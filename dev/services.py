"""`make up` and `make down`: the project's Airflow and broker in the background, until stopped.

``down`` needs nothing but the standard library, so it works when the environment is gone.
"""

from __future__ import annotations

import sys
from pathlib import Path

from dev.airflow.home import LocalAirflow, running_airflow, stop_airflow
from drawdown.errors import DrawdownError
from drawdown.local_services import note_services
from drawdown.testing.servers.kafka import KafkaServer

ROOT = Path(__file__).resolve().parents[1]
STATE_DIR = ROOT / ".drawdown"
AIRFLOW_HOME = STATE_DIR / "airflow"
KAFKA = STATE_DIR / "kafka"


def up() -> None:
    """Start what is not running and print addresses and login. Raises MachineError."""
    broker = KafkaServer(KAFKA)
    address = broker.running_at()
    if address is None:
        print("Starting the broker ...", flush=True)
        broker.start(detached=True)
        address = broker.bootstrap_servers
    airflow = running_airflow(ROOT, AIRFLOW_HOME)
    if airflow is None:
        upgrade_metastore()
        print("Starting Airflow (about 10 s) ...", flush=True)
        airflow = LocalAirflow(ROOT, AIRFLOW_HOME, extra_env={"DRAWDOWN_KAFKA": address}, triggerer=True)
        airflow.start(detached=True)
    note_services(ROOT, {"DRAWDOWN_KAFKA": address})
    print(f"Fleet:   {airflow.url}/plugin/drawdown-fleet   user {airflow.user}, password {airflow.password}")
    print(f"Airflow: {airflow.url}")
    print(f"Kafka:   {address}")
    print("Airflow pauses a new DAG: switch it on in the list of DAGs")
    print("Stop both with: make down")


def upgrade_metastore() -> None:
    """Bring the metastore of the project to this program's schema. Raises MachineError."""
    # Imported here: `down` has no packages.
    from drawdown.metastore import Metastore
    from drawdown.spec import load_project

    before, now = Metastore.upgrade(load_project(ROOT).metastore_url)
    if before not in (None, now):
        print(f"The metastore has schema {now} now, it had {before}", flush=True)


def down() -> None:
    """Stop both with everything they started; does nothing when nothing is running."""
    note_services(ROOT, {})
    stop_airflow(AIRFLOW_HOME)
    KafkaServer(KAFKA).stop()


def main() -> int:
    """``up`` or ``down``; prints errors without a trace."""
    try:
        {"up": up, "down": down}[sys.argv[1]]()
    except DrawdownError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
