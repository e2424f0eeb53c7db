"""Sales by shop: what tests of sinks and of tables as sources land."""

from __future__ import annotations

from tests.support.sandbox import Sandbox


def sell(sandbox: Sandbox, file: int, **amounts: int) -> None:
    """One file; the shop `none` is NULL."""
    rows = [{"shop": None if shop == "none" else shop, "amount": n} for shop, n in amounts.items()]
    sandbox.land_json(f"landing/sales/{file}.json", rows, mtime=file)
