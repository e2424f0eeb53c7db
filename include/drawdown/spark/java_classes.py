"""Loads Drawdown's Java classes that stand beside this module, on drivers with and without Drawdown's jar."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from py4j.java_gateway import JavaGateway


@cache
def java_class(gateway: JavaGateway, name: str) -> Any:
    """Return the ``java.lang.Class`` of drawdown.NAME, from the jar or else compiled by Spark's compiler."""
    jvm = gateway.jvm
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    if loader.getResource(f"drawdown/{name}.class") is None:
        compiler = jvm.org.codehaus.janino.SimpleCompiler()
        compiler.setParentClassLoader(loader)
        compiler.cook(Path(__file__).with_name(f"{name}.java").read_text())
        loader = compiler.getClassLoader()
    return loader.loadClass(f"drawdown.{name}")


@cache
def java_object(gateway: JavaGateway, name: str, *given: Any) -> Any:
    """Return the drawdown.NAME of this JVM that was made from these arguments, by its only constructor."""
    arguments = gateway.new_array(gateway.jvm.java.lang.Object, len(given))
    for number, each in enumerate(given):
        arguments[number] = each
    return java_class(gateway, name).getConstructors()[0].newInstance(arguments)


@cache
def java_set(gateway: JavaGateway, names: frozenset[str]) -> Any:
    """Return the names as a java.util.Set of this JVM."""
    found = gateway.jvm.java.util.HashSet()
    for name in names:
        found.add(name)
    return found
