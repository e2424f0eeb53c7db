"""The commands as a stranger types them: real processes in a folder of their own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command_line import DRAWDOWN, answer, drawdown


def refused(done: subprocess.CompletedProcess[str], code: int, id: str) -> str:
    """One error with this id and exit code, and no trace."""
    assert done.returncode == code, done.stderr
    assert id in done.stderr
    assert "Traceback" not in done.stderr + done.stdout
    assert done.stderr.count("  where:") <= 1
    return done.stderr


def test_init_test_run_work_first_time_and_a_second_run_has_nothing_new(sales: Path) -> None:
    tested = drawdown(sales, "test", "sales")
    assert tested.returncode == 0, tested.stdout + tested.stderr
    assert "✓ sales/first: 2 waves" in tested.stdout
    assert not (sales / ".drawdown/metastore.db").exists(), "a test leaves the project alone"

    first = drawdown(sales, "run", "sales", "--json")
    assert first.returncode == 0, first.stderr
    [ran] = answer(first.stdout)
    counts = ran["run"]["counts"]
    assert (
        counts["read"] == counts["malformed"] + counts["future"] + counts["quarantined"] + counts["fed"] > 0
    )

    second = drawdown(sales, "run", "sales", "--json")
    assert answer(second.stdout) == [{"pipeline": "sales", "run": None, "error": None}]

    [listed] = answer(drawdown(sales, "runs", "--json").stdout)
    assert listed["run_id"] == ran["run"]["run_id"]
    shown = answer(drawdown(sales, "runs", "--id", listed["run_id"], "--json").stdout)
    assert shown["verdicts"][0]["outcome"] == "pass"


@pytest.mark.full
def test_a_case_that_differs_shows_the_rows_and_exits_with_1(sales: Path) -> None:
    cases = sales / "include/pipelines/sales/tests"
    wrong = {"misspelt": ("amount", "amuont"), "worded": ("10.50", "ten"), "first": ("DE", "XX")}
    for case, (old, new) in wrong.items():
        if case != "first":
            shutil.copytree(cases / "first", cases / case)
        expected = cases / case / "wave1.expected.csv"
        expected.write_text(expected.read_text().replace(old, new))
    done = drawdown(sales, "test", "sales")
    assert done.returncode == 1
    assert "test.unknown-column  the table has no column 'amuont'" in done.stderr
    assert "test.wrong-value  column amount: 'ten' is no " in done.stderr
    assert "~ payment_id=p1, paid_at=2024-01-01 10:00:00, amount=10.50" in done.stdout
    assert "country: expected XX, found DE" in done.stdout


@pytest.mark.full
def test_a_failed_audit_is_decided_about_without_spark(sales: Path) -> None:
    quality = sales / "include/pipelines/sales/quality.yaml"
    quality.write_text(
        "expectations:\n  - {type: expect_column_max_to_be_between, kwargs: {column: amount, max_value: 1}}\n"
    )
    failed = drawdown(sales, "run", "sales")
    said = refused(failed, 7, "audit.fail")
    assert "expect_column_max_to_be_between" in said
    assert "drawdown release sales" in said

    released = drawdown(sales, "release", "sales", "--why", "seen and fine", "--by", "ada", "--json")
    decided = answer(released.stdout)
    assert decided["rows"] == decided["published_rows"] > 0
    [release] = [r for r in answer(drawdown(sales, "runs", "--json").stdout) if r["kind"] == "release"]
    assert (release["origin"]["by"], release["origin"]["why"]) == ("ada", "seen and fine")
    assert release["origin"]["batches"] == [0, 0]
    refused(drawdown(sales, "discard", "sales", "--why", "again"), 3, "slice.none-held")


def test_specs_are_checked_all_in_one_go(sales: Path) -> None:
    assert drawdown(sales, "init", "other").returncode == 0
    for name in ("sales", "other"):
        spec = sales / f"include/pipelines/{name}/pipeline.yaml"
        spec.write_text(spec.read_text().replace("watermark:", "wartermark:"))
    done = drawdown(sales, "validate")
    assert done.returncode == 2
    assert done.stderr.count("spec.unknown-key") == 2
    assert "did you mean 'watermark'" in done.stderr
    assert "include/pipelines/sales/pipeline.yaml:" in done.stderr


def test_what_cannot_be_meant_is_one_error_and_touches_nothing(tmp_path: Path, sales: Path) -> None:
    before = {path: path.read_bytes() for path in sales.rglob("*") if path.is_file()}
    refused(drawdown(sales, "init", "sales"), 3, "init.exists")
    refused(drawdown(sales, "init", "../escape"), 2, "")
    refused(drawdown(sales, "run", "nothing"), 2, "spec.no-pipeline")
    refused(drawdown(sales, "runs", "--id", "no-run"), 2, "cli.no-run")
    assert drawdown(sales, "run").returncode == 2
    assert drawdown(sales, "frobnicate").returncode == 2
    after = {path: path.read_bytes() for path in sales.rglob("*") if path.is_file()}
    assert {p: c for p, c in after.items() if "metastore.db" not in p.name} == before


def test_a_folder_without_a_project_says_what_to_do(tmp_path: Path) -> None:
    done = subprocess.run(
        [*DRAWDOWN, "validate"],
        cwd=tmp_path,
        env={k: v for k, v in os.environ.items() if k != "DRAWDOWN_PROJECT"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "drawdown init" in refused(done, 2, "spec.no-project")


def test_the_doctor_names_the_command_that_fixes(sales: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Other tests of this process may have left a home whose database has no tables.
    monkeypatch.delenv("AIRFLOW_HOME", raising=False)
    done = drawdown(sales, "doctor", "--json")
    found = {finding["about"]: finding for finding in answer(done.stdout)}
    assert done.returncode == 0
    assert {"java", "ports", "jars", "disk", "storage", "metastore", "airflow"} <= set(found)
    (sales / "include/project.yaml").write_text("metastore: sqlite:///include/project.yaml/x.db\n")
    broken = drawdown(sales, "doctor", "--json")
    found = {finding["about"]: finding for finding in answer(broken.stdout)}
    assert broken.returncode == 8
    assert found["metastore"]["level"] == "fail"
    assert found["metastore"]["do"]


@pytest.mark.parametrize(
    "command",
    [["--help"], *([each, "--help"] for each in ("runs", "validate", "status", "logs", "lineage"))],
)
def test_help_starts_fast_because_it_imports_little(tmp_path: Path, command: list[str]) -> None:
    script = (
        "import sys, atexit\n"
        "heavy = {'pyspark', 'great_expectations', 'airflow', 'deltalake', 'sqlalchemy'}\n"
        "atexit.register(lambda: print('HEAVY', sorted(heavy & set(sys.modules)), file=sys.stderr))\n"
        f"sys.argv = ['drawdown', *{command}]\n"
        "from drawdown.cli.main import main; main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "HEAVY []" in done.stderr


def test_a_bug_is_one_error_that_names_a_private_file_with_its_trace(tmp_path: Path) -> None:
    command = (
        "from drawdown.cli import main\n"
        "@main.app.command()\n"
        "def broken() -> None:\n"
        "    {}['missing']\n"
        "main.main()"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", command, "broken"], env=environment, capture_output=True, text=True
    )
    said = refused(done, 1, "cli.unexpected  KeyError: 'missing'")
    [trace] = tmp_path.glob("drawdown-*.txt")
    assert str(trace) in "".join(said.split())
    assert "KeyError" in trace.read_text()
    assert trace.stat().st_mode & 0o077 == 0


@pytest.mark.full
def test_what_users_code_prints_is_beside_the_one_json_document(sales: Path) -> None:
    folder = sales / "include/pipelines/sales"
    spec = folder / "pipeline.yaml"
    spec.write_text(
        spec.read_text().replace("transform: transform.sql    # or transform.py", "transform: transform.py")
    )
    query = (folder / "transform.sql").read_text()
    (folder / "transform.py").write_text(
        "import logging, sys\n"
        "print('said at import')\n"
        "logging.basicConfig(stream=sys.stdout)\n\n\n"
        "def transform(inputs):\n"
        "    sys.stdout.write('said in the function\\n')\n"
        "    logging.warning('said by logging')\n"
        "    inputs['payments'].createOrReplaceTempView('payments')\n"
        f"    return inputs['payments'].sparkSession.sql('''{query}''')\n"
    )
    (folder / "transform.sql").unlink()
    done = drawdown(sales, "run", "sales", "--json")
    assert done.returncode == 0, done.stderr
    [ran] = answer(done.stdout)
    assert ran["run"]["counts"]["read"] > 0
    for said in ("said at import", "said in the function", "said by logging"):
        assert said in done.stderr
