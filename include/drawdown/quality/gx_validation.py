"""Runs one Great Expectations validation without a context (it would be process-wide) or progress bars.

Import it after :func:`drawdown.quality.gx_import.load`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from great_expectations.core import ExpectationValidationResult
from great_expectations.core.batch import Batch
from great_expectations.execution_engine.execution_engine import ExecutionEngine
from great_expectations.expectations.expectation import Expectation
from great_expectations.validator.validator import Validator

from drawdown.quality.expectations import POSITION


class QuietValidator(Validator):
    """Judges one Spark or pandas frame with the matching engine."""

    def __init__(self, engine: ExecutionEngine[Any], frame: Any) -> None:
        super().__init__(execution_engine=engine, batches=[Batch(data=frame)])

    def _determine_progress_bars(self) -> bool:
        return False


def look(
    validator: QuietValidator, expectations: Sequence[Expectation], result_format: dict[str, Any]
) -> dict[int, ExpectationValidationResult]:
    """Return results by the expectation's position in quality.yaml."""
    asked = validator.process_expectations_for_validation([one.configuration for one in expectations])
    seen = {}
    for result in validator.graph_validate(asked, {"result_format": dict(result_format)}):
        if result.expectation_config is None:
            raise LookupError("Great Expectations returned a result without its expectation")
        seen[result.expectation_config.meta[POSITION]] = result
    return seen
