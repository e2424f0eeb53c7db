"""docs/tutorial.md, followed in an empty folder as a reader follows it."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.support.command_line import drawdown
from tests.support.walkthrough import Reader, Typed, Written, steps

PAGE = (Path(__file__).parents[2] / "docs/tutorial.md").read_text()
PER_HOUR = [
    ("07:00", 5, "24.30"),
    ("08:00", 3, "20.90"),
    ("09:00", 2, "17.60"),
    ("10:00", 2, "3.10"),
    ("11:00", 2, "17.50"),
]


def test_every_output_of_the_page_fits_80_columns() -> None:
    outputs = [step.output for step in steps(PAGE) if isinstance(step, Typed) and step.output]
    assert len(outputs) > 12
    assert [line for output in outputs for line in output.splitlines() if len(line) > 80] == []


def test_an_output_is_compared_with_what_may_differ_left_out(tmp_path: Path) -> None:
    def shown(output: str) -> str:
        return f"```sh\nprintf 'one\\n  two  2.5 s\\nthree\\n'\n```\n\n```text\n{output}\n```\n"

    for output in ("one\ntwo 2.5 s\nthree", "one\ntwo ... s\nthree", "one\n...\nthree", "one\n..."):
        [step] = steps(shown(output))
        Reader(tmp_path).take(step)
    for output in ("one\nthree", "one\n... m\nthree", "...\ntwo 2.5 s"):
        [step] = steps(shown(output))
        with pytest.raises(AssertionError, match="the page shows"):
            Reader(tmp_path).take(step)


def test_the_files_of_the_page_are_valid(tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    first, *rest = steps(PAGE)
    assert isinstance(first, Typed)
    reader.take(Typed(first.commands.replace("--yes", "--yes --no-test"), None))
    for step in rest:
        if isinstance(step, Written):
            reader.take(step)
    done = drawdown(reader.folder, "validate")
    assert (done.returncode, done.stdout.split()) == (0, ["✓", "sales", "✓", "sales_per_hour"]), done.stderr


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_the_page_does_what_it_says(tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    for step in steps(PAGE):
        reader.take(step)
    tables = reader.folder / ".drawdown/storage/tables"
    sales = DeltaTable(str(tables / "sales")).to_pyarrow_table().to_pylist()
    assert sorted(row["sale_id"] for row in sales) == list(range(1, 16))
    assert {row["shop"] for row in sales} == {"Harbour", "Museum", "Station"}
    hours = DeltaTable(str(tables / "sales_per_hour")).to_pyarrow_table().to_pylist()
    counted = sorted((f"{row['hour']:%H:%M}", row["sales"], str(row["takings"])) for row in hours)
    assert counted == PER_HOUR
