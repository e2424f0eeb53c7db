"""Where this library was installed from, and the commands that complete an installation."""

from __future__ import annotations

from pathlib import Path

INSTALLATION = Path(__file__).resolve().parents[3]
"""A checkout, where `make setup` runs; for a wheel, site-packages' parent (``<venv>/lib/python3.11``)."""


def how_to_set_up() -> str:
    """Return the command that fetches the jars."""
    return "make setup" if _is_checkout() else "drawdown jars fetch"


def how_to_install(extra: str) -> str:
    """Return the command that installs the packages of an extra."""
    return "make setup" if _is_checkout() else f"pip install 'drawdown[{extra}]'"


def _is_checkout() -> bool:
    return (INSTALLATION / "Makefile").is_file()
