"""What code of a pipeline can read of the processes and files around its driver, as the user it really is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support import key_holder, unprivileged

pytestmark = [pytest.mark.capability("SAFE-06"), pytest.mark.timeout(150)]
CANARY = "canary-of-airflow"
KEYS = {
    "AIRFLOW__CORE__FERNET_KEY": CANARY,
    "AIRFLOW__API_AUTH__JWT_SECRET": CANARY,
    "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"postgresql+psycopg://airflow:{CANARY}@localhost/airflow",
    "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN_ASYNC": f"postgresql+psycopg://airflow:{CANARY}@localhost/airflow",
    "POSTGRES_PASSWORD": CANARY,
    "HADOOP_CREDSTORE_PASSWORD": CANARY,
    "SSH_AUTH_SOCK": f"/run/{CANARY}",
    "NAMED_BY_THE_PROJECT": "wanted",
}


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """A folder of that user; pytest's own are root's alone."""
    with tempfile.TemporaryDirectory(prefix="drawdown-prying-", dir="/tmp") as name:
        folder = Path(name)
        (folder / "passwords.json").write_text(json.dumps({"admin": CANARY}))
        (folder / "passwords.json").chmod(0o600)
        for each in (folder, folder / "passwords.json"):
            os.chown(each, unprivileged.user(), -1)
        yield folder


def started(place: Path, *arguments: str) -> subprocess.Popen[str]:
    own = {
        "HOME": str(place), "TMPDIR": str(place), "AIRFLOW_HOME": str(place / "airflow"), "USER": "somebody",
        "DRAWDOWN_PROJECT": str(Path(__file__).parents[2]), "PYTHONDONTWRITEBYTECODE": "1",
    }  # fmt: skip
    return subprocess.Popen(
        unprivileged.command(sys.executable, key_holder.__file__, *arguments),
        env={**os.environ, **own, **KEYS},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=place,
    )


@contextmanager
def neighbour(place: Path) -> Iterator[int]:
    """A process of the same user that has the keys and does not know Drawdown; yields its id."""
    process = started(place, "idle")
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline().split()[1])
    finally:
        process.kill()
        process.communicate()


def pried(place: Path, kind: str) -> tuple[dict[str, Any], list[str]]:
    """What a driver has read, and the ids of the processes that submitted it."""
    process = started(place, kind, str(place / "report"), str(place / "passwords.json"))
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 0, output
    said = dict(line.split() for line in output.splitlines() if line.startswith(("component ", "task ")))
    found: dict[str, Any] = json.loads((place / "report").read_text())
    assert found["uid"] == unprivileged.user()
    return found, [said["component"], said["task"]]


def readable(process: dict[str, Any]) -> set[str]:
    """What could be read of a process besides its command line, which Linux shows everybody."""
    return {name for name, value in process.items() if value is not None} - {"cmdline"}


@dataclass(frozen=True)
class Pried:
    """What a driver has read beside a process with keys that is not closed, and who submitted it."""

    found: dict[str, Any]
    submitters: list[str]
    open_one: str
    place: Path


@pytest.fixture(scope="module")
def driver(place: Path) -> Pried:
    """A driver that was submitted by a task of ours."""
    with neighbour(place) as open_one:
        return Pried(*pried(place, "closed"), str(open_one), place)


def test_a_driver_reads_no_key_of_the_processes_that_submitted_it(driver: Pried) -> None:
    processes = driver.found["processes"]
    for pid in driver.submitters:
        assert readable(processes[pid]) == set(), "neither environment nor memory nor descriptors"
    with_keys = {pid for pid, process in processes.items() if CANARY in json.dumps(process)}
    assert with_keys == {driver.open_one}, "what is not closed is read: this sees keys where there are some"
    assert readable(processes[driver.open_one]) == {"environ", "memory", "descriptors", "attached"}


def test_a_driver_has_what_the_project_names_and_no_key(driver: Pried) -> None:
    assert CANARY not in json.dumps(driver.found["environment"])
    assert driver.found["environment"]["NAMED_BY_THE_PROJECT"] == "wanted"


def test_a_driver_inherits_no_descriptor_of_its_task(driver: Pried) -> None:
    files = {link for link in driver.found["descriptors"].values() if link and link.startswith("/")}
    assert {link for link in files if not link.startswith("/proc/")} <= {"/dev/null", "/dev/urandom"}


def test_files_of_the_same_user_are_no_secret_to_its_driver(driver: Pried) -> None:
    """As docs/security.md says: another user, container or machine separates files, and nothing else does."""
    assert driver.found["files"] == [str(driver.place / "passwords.json")]


@pytest.mark.full
def test_a_stock_operator_leaves_its_keys_with_those_above_the_front(place: Path) -> None:
    """The front gets the whole environment and closes itself, with its guard; what is above is not ours."""
    found, submitters = pried(place, "bare")
    with_keys = {pid for pid, each in found["processes"].items() if f"KEY={CANARY}" in str(each["environ"])}
    assert with_keys == set(submitters)
