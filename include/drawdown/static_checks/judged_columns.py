"""The columns that expectations and `history:` judge. A run checks them, too: no sqlglot here."""

from __future__ import annotations

from collections.abc import Iterator

from drawdown.errors import SpecError
from drawdown.spec import Pipeline
from drawdown.spec.quality import columns_named
from drawdown.static_checks.places import QUALITY, Places
from drawdown.static_checks.relation import Relation
from drawdown.static_checks.unknown_names import unknown_column

_ARGUMENTS = frozenset({"column", "column_A", "column_B", "column_list"})
# They ask whether columns are there: it is for them to say.
_ABOUT_COLUMNS = ("expect_column_to_exist", "expect_table_")


def check_judged_columns(pipeline: Pipeline, rows: Relation, places: Places) -> Iterator[SpecError]:
    """``spec.unknown-column`` for each that the rows do not have."""
    if not rows.whole:
        return
    for index, each in enumerate(pipeline.quality.expectations):
        if each.type.startswith(_ABOUT_COLUMNS):
            continue
        for argument in sorted(_ARGUMENTS & each.kwargs.keys()):
            for name in columns_named({argument: each.kwargs[argument]}):
                if rows.find(name) is None:
                    where = places.key(QUALITY, "expectations", index, "kwargs", argument)
                    yield unknown_column(f"the expectation {each.id}", name, rows.names, where)
    for index, measure in enumerate(pipeline.quality.history):
        if measure.column is not None and rows.find(measure.column) is None:
            where = places.key(QUALITY, "history", index, "column")
            yield unknown_column(f"the history expectation {measure.id}", measure.column, rows.names, where)
