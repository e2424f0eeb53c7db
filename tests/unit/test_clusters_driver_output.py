"""A driver does not end before its last lines have been read."""

from __future__ import annotations

import subprocess
import sys
import time

SAYS = "from drawdown.launch.driver_output import wait_until_read; print('last', flush=True); "


def test_it_stays_until_a_slow_reader_has_read() -> None:
    with subprocess.Popen([sys.executable, "-c", SAYS + "wait_until_read()"], stdout=subprocess.PIPE) as said:
        time.sleep(1)
        assert said.poll() is None
        assert said.stdout is not None
        assert said.stdout.readline() == b"last\n"
        assert said.wait(60) == 0


def test_it_does_not_wait_for_ever() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SAYS + "wait_until_read(0.2)"], stdout=subprocess.PIPE
    ) as said:
        assert said.wait(60) == 0


def test_it_does_not_wait_for_a_file() -> None:
    command = [sys.executable, "-c", SAYS + "wait_until_read(60)"]
    assert subprocess.run(command, stdout=subprocess.DEVNULL, timeout=50, check=False).returncode == 0
