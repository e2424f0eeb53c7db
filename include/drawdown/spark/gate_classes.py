"""Java classes that walk Spark's plans, from Drawdown's jar or else compiled by Spark's own compiler."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from py4j.java_gateway import JavaGateway


@cache
def gate_class(gateway: JavaGateway, name: str) -> Any:
    """Return an instance of ``drawdown.<name>`` in this JVM."""
    jvm = gateway.jvm
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    if loader.getResource(f"drawdown/{name}.class") is None:
        compiler = jvm.org.codehaus.janino.SimpleCompiler()
        compiler.setParentClassLoader(loader)
        compiler.cook(Path(__file__).with_name(f"{name}.java").read_text())
        loader = compiler.getClassLoader()
    none = gateway.new_array(jvm.java.lang.Class, 0), gateway.new_array(jvm.java.lang.Object, 0)
    return loader.loadClass(f"drawdown.{name}").getDeclaredConstructor(none[0]).newInstance(none[1])


@cache
def java_set(gateway: JavaGateway, names: frozenset[str]) -> Any:
    """Return the names as a java.util.Set in this JVM."""
    found = gateway.jvm.java.util.HashSet()
    for name in names:
        found.add(name)
    return found
