"""A connection to a JVM that is gone is `spark.gone`, wherever an exception of Py4J arrives."""

from __future__ import annotations

from typing import Any

import pytest
from py4j.java_gateway import GatewayParameters, JavaGateway

from drawdown.cli.main import _unforeseen
from drawdown.processes.ports import free_ports
from drawdown.spark.gateway import is_cut_off


def refused_by_a_jvm() -> Exception:
    [port] = free_ports(1)
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port))
    with pytest.raises(Exception) as caught:  # noqa: PT011  Py4J's own, or the socket's
        gateway.jvm.java.lang.System.currentTimeMillis()
    return caught.value


def test_a_refused_connection_to_the_jvm_is_not_called_a_bug() -> None:
    refused = refused_by_a_jvm()
    assert is_cut_off(refused)
    error = _unforeseen(refused)
    assert (error.id, error.exit_code) == ("spark.gone", 8)
    wrapped = RuntimeError("while it stopped")
    wrapped.__cause__ = refused
    assert is_cut_off(wrapped)


def test_another_refused_connection_and_another_exception_stay_what_they_are() -> None:
    assert not is_cut_off(ConnectionRefusedError(111, "Connection refused"))
    assert _unforeseen(KeyError("missing")).id == "cli.unexpected"


def test_users_code_below_py4js_frames_is_not_the_connection() -> None:
    """Spark calls a function back below Py4J's frames, and it may meet a refusal of its own."""
    names: dict[str, Any] = {}
    for file, text in (
        ("/site/users/sink.py", "def ask(): raise ConnectionRefusedError"),
        ("/site-packages/py4j/java_gateway.py", "def call(): ask()"),
    ):
        exec(compile(text, file, "exec"), names)
    with pytest.raises(ConnectionRefusedError) as caught:
        names["call"]()
    assert not is_cut_off(caught.value)
