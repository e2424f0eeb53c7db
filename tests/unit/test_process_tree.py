"""What a tree of processes has used, beside what the kernel says when it has ended."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from drawdown.processes.usage import use_of

BUSY = """
import subprocess, sys, time
def burn(seconds):
    until = time.process_time() + seconds
    while time.process_time() < until: pass
if len(sys.argv) > 1:
    burn(0.3)
else:
    subprocess.run([sys.executable, "-c", SELF, "below"], check=True)
    held = bytearray(b"x") * (80 * 2**20); del held
    burn(0.2)
    print("ready", flush=True)
    sys.stdin.read()
"""
TICK_US = 20_000


def test_a_tree_counts_those_that_are_there_and_those_that_have_ended() -> None:
    program = f"SELF = {BUSY!r}\n{BUSY}"
    begun = time.monotonic()
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as job:
        assert job.stdin is not None
        assert job.stdout is not None
        job.stdout.readline()
        used = use_of(job.pid)
        took = time.monotonic() - begun
        job.stdin.close()
        _, _, kernel = os.wait4(job.pid, 0)
        job.returncode = 0
    assert used is not None
    assert 500_000 - TICK_US <= used.cpu_us <= (kernel.ru_utime + kernel.ru_stime) * 1e6 + TICK_US
    assert used.peak_bytes >= 80 * 2**20
    assert 0 < used.age_us <= took * 1e6 + TICK_US


def test_a_process_that_is_gone_has_used_nothing_that_is_known() -> None:
    job = subprocess.Popen([sys.executable, "-c", ""])
    job.wait()
    assert use_of(job.pid) is None


def test_what_is_below_a_process_belongs_to_it() -> None:
    mine = use_of(os.getpid())
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        below = use_of(child.pid)
        both = use_of(os.getpid())
        assert mine is not None
        assert below is not None
        assert both is not None
        assert both.peak_bytes >= mine.peak_bytes
        assert both.peak_bytes > below.peak_bytes > 0
        child.kill()
