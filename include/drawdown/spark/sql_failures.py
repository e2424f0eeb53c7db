"""What Java raises while Spark reads or analyses a text of SQL, raised as a refusal of Spark's.

Spark has sentences for what it refuses. A text of some thousand parentheses overflows the stack of its parser
instead, and a constant that a function cannot read ends with an exception of a library: both come to Python
with a stack trace of Java's.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from drawdown.spark.sentences import root_sentence

_DEEP = "it nests too deep: write fewer parentheses and calls within each other, or name parts by WITH"


@contextmanager
def as_refusal() -> Iterator[None]:
    """Raise PySparkException for a failure of Java; around, or as a decorator of, what parses or analyses."""
    try:
        yield
    except Py4JJavaError as cause:
        if str(cause.java_exception.getClass().getSimpleName()) == "StackOverflowError":
            raise PySparkException(_DEEP, "FAILED_TO_PARSE_TOO_COMPLEX") from None
        raise PySparkException(root_sentence(cause), "INTERNAL_ERROR") from None
