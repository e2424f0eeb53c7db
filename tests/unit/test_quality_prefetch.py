"""Great Expectations can be imported beside other work."""

from __future__ import annotations

import subprocess
import sys


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120
    )


def test_an_import_in_the_background_serves_the_audit_that_follows() -> None:
    ran = run("""
import sys, threading, warnings
show = warnings.showwarning
from drawdown.quality.gx_import import load, prefetch
assert "great_expectations" not in sys.modules
prefetch()
(importing,) = [t for t in threading.enumerate() if t.name == "great-expectations-import"]
import pandas, pyspark.sql.pandas.types, pyspark.sql.functions  # what a drain imports meanwhile
load()
from great_expectations.expectations.registry import get_expectation_impl
get_expectation_impl("expect_column_max_to_be_between")
importing.join(1)
assert not importing.is_alive()
assert warnings.showwarning is show, "the process's warnings were redirected"
""")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


def test_a_process_that_ends_first_does_not_wait_for_the_import() -> None:
    ran = run("""
import sys
from drawdown.quality.gx_import import prefetch
prefetch()
sys.exit(3)
""")
    assert (ran.returncode, ran.stdout, ran.stderr) == (3, "", "")


def test_a_broken_installation_stays_quiet_until_the_audit_asks() -> None:
    ran = run("""
import sys, threading
sys.modules["great_expectations"] = None
from drawdown.quality.gx_import import load, prefetch
prefetch()
[t.join() for t in threading.enumerate() if t.name == "great-expectations-import"]
try:
    load()
except ImportError:
    sys.exit(5)
""")
    assert (ran.returncode, ran.stdout, ran.stderr) == (5, "", "")
