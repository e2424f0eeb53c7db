"""Failures of Spark and Python as one sentence: no stack trace, no plan dump, no class names."""

from __future__ import annotations

import re

from pyspark.errors import PySparkException
from pyspark.errors.exceptions.captured import StreamingQueryException

PYTHON = "Traceback (most recent call last):"
_SUGGESTED = re.compile(r" Did you mean one of the following\? \[([^\]]*)\]\.?")
_CLASS_NAME = re.compile(r"^(?:[a-z]\w*\.)+[A-Z]\w*(?:Exception|Error):\s*")


def spark_sentence(cause: PySparkException) -> str:
    """Return Spark's own sentence without its plan dump."""
    text = str(cause).split("\n\nJVM stacktrace")[0].split(";\n'")[0].split("SQLSTATE:")[0]
    return _SUGGESTED.sub(_of_the_user, " ".join(text.removeprefix(f"[{cause.getCondition()}]").split()))


def _of_the_user(suggested: re.Match[str]) -> str:
    """Return Spark's suggestion without the columns that Drawdown adds to a source."""
    names = [name for name in suggested[1].split(", ") if "`_dd_" not in name]
    return f" Did you mean one of the following? [{', '.join(names)}]." if names else ""


def python_sentence(text: str) -> str:
    """Return what a user's function raised in a Python worker, with its file and line."""
    trace = text.split(PYTHON)[-1].split("\n\tat ")[0].split("\n SQLSTATE:")[0].splitlines()
    frames = [line.strip() for line in trace if line.startswith('  File "')]
    said = " ".join(line.strip() for line in trace if line.strip() and not line.startswith("  "))
    return _bounded(f"{said} ({frames[-1]})" if frames else said)


def root_sentence(cause: Exception) -> str:
    """Return the innermost message, on one line, without class names and stack frames."""
    inner: BaseException = cause
    while isinstance(inner, PySparkException) and inner.__cause__ is not None:
        inner = inner.__cause__
    # Py4J adds a first line, and a colon before the Java exception.
    lines = [line.strip().removeprefix(": ") for line in str(inner).splitlines()]
    lines = [line for line in lines if not line.startswith("An error occurred while calling ")]
    if isinstance(inner, StreamingQueryException):
        lines = lines[: next((i for i, x in enumerate(lines) if x.startswith("=== Streaming")), len(lines))]
    causes = [x.removeprefix("Caused by: ") for x in lines if x.startswith("Caused by: ")]
    said = causes[-1] if causes else next((x for x in lines if x), type(inner).__name__)
    return _bounded(_CLASS_NAME.sub("", said).split(" SQLSTATE:")[0])


def whole_text(cause: BaseException) -> str:
    """Return all messages of an exception and its causes, with Java's stack, to search for a mark."""
    texts: list[str] = []
    inner: BaseException | None = cause
    while inner is not None:
        texts += [str(inner), str(getattr(inner, "_stackTrace", None) or "")]
        inner = inner.__cause__
    return "\n".join(texts)


def _bounded(sentence: str) -> str:
    return sentence if len(sentence) <= 600 else sentence[:600] + " …"
