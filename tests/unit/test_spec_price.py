"""What a cluster profile costs: amounts as they are written, and what a profile asks for."""

from __future__ import annotations

import os
from decimal import Decimal
from pathlib import Path

import pytest

from drawdown.errors import SpecError
from drawdown.spec import Project, load_project
from drawdown.spec.clusters.price import GB
from tests.support.spec_folders import SpecFolders


def project(tmp_path: Path, profile: str) -> Project:
    folders = SpecFolders(tmp_path)
    folders.project_file.write_text(f"clusters:\n  local:\n    kind: local\n    {profile}\n")
    return load_project(folders.root)


def test_amounts_are_decimal_digits_as_they_are_written(tmp_path: Path) -> None:
    price = (
        project(tmp_path, "price: {currency: EUR, core_hour: 0.1, gb_hour: 0.005}").clusters["local"].price
    )
    assert price is not None
    assert (price.currency, price.core_hour, price.gb_hour) == ("EUR", Decimal("0.1"), Decimal("0.005"))


def test_without_a_price_there_is_none(tmp_path: Path) -> None:
    assert project(tmp_path, "driver_memory: 1g").clusters["local"].price is None


def test_memory_may_cost_nothing(tmp_path: Path) -> None:
    price = project(tmp_path, "price: {currency: USD, core_hour: 1}").clusters["local"].price
    assert price is not None
    assert price.gb_hour == 0


def test_an_application_records_the_price_with_what_is_billed_beside_its_time(tmp_path: Path) -> None:
    price = project(
        tmp_path, "price: {currency: EUR, core_hour: 0.10, startup: 90 seconds, minimum: 1 minute}"
    )
    found = price.clusters["local"].price
    assert found is not None
    assert found.recorded == {
        "currency": "EUR",
        "core_hour": "0.1",
        "gb_hour": "0",
        "startup_us": "90000000",
        "minimum_us": "60000000",
    }


def test_an_amount_may_come_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORE_HOUR", "0.048")
    price = project(tmp_path, "price: {currency: EUR, core_hour: '${CORE_HOUR}'}").clusters["local"].price
    assert price is not None
    assert price.core_hour == Decimal("0.048")


@pytest.mark.parametrize(
    ("price", "id", "says"),
    [
        ("{currency: EUR, core_hour: -1}", "spec.wrong-value", "greater than or equal to 0"),
        ("{currency: EUR, core_hour: cheap}", "spec.wrong-value", "amount"),
        ("{currency: EUR, core_hour: 'NaN'}", "spec.wrong-value", "finite"),
        ("{currency: EUR, core_hour: true}", "spec.wrong-value", "core_hour"),
        ("{currency: Euro, core_hour: 1}", "spec.wrong-value", "pattern"),
        ("{currency: EUR}", "spec.missing-key", "core_hour"),
        ("{core_hour: 1}", "spec.missing-key", "currency"),
        ("{currency: EUR, core_hour: 0}", "spec.no-effect", "zero"),
        ("{currency: EUR, core_hour: 1, startup: 0 seconds}", "spec.wrong-duration", "longer than zero"),
        ("{currency: EUR, core_hour: 1, minimum: 60}", "spec.wrong-type", "unit"),
        ("{currency: EUR, core_hours: 1}", "spec.unknown-key", "'core_hour'"),
    ],
)
def test_a_price_that_says_nothing_sensible_is_refused(
    tmp_path: Path, price: str, id: str, says: str
) -> None:
    with pytest.raises(SpecError) as refused:
        project(tmp_path, f"price: {price}")
    assert (refused.value.id, refused.value.where) == (id, "include/project.yaml:4")
    assert says in f"{refused.value.what} {refused.value.do}"


def test_a_local_profile_asks_for_the_cores_of_its_master_and_its_drivers_memory(
    tmp_path: Path,
) -> None:
    local = project(tmp_path, "master: local[3]\n    driver_memory: 1500m").clusters["local"]
    assert (local.cores, local.memory_bytes) == (3, 1500 * GB // 1024)


def test_a_star_asks_for_all_that_this_process_may_use(tmp_path: Path) -> None:
    local = project(tmp_path, "master: local[*]\n    driver_memory: 2g").clusters["local"]
    assert (local.cores, local.memory_bytes) == (len(os.sched_getaffinity(0)), 2 * GB)
