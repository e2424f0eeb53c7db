"""Lines for logs that others write to at the same time."""

from __future__ import annotations

from io import StringIO

from drawdown.application.log_lines import LogLines, say


class Out(StringIO):
    """Unbuffered, as a driver's output is: each write goes out by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[str] = []

    def write(self, text: str) -> int:
        self.writes.append(text)
        return len(text)


def test_a_line_and_its_end_go_out_together() -> None:
    out = Out()
    say("two\nlines", out)
    LogLines(out).starting_spark()
    assert out.writes == ["two\nlines\n", "spark: starting\n"]
