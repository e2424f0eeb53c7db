"""`make setup` after an interruption, with another Python, in another place: made again where it has to be.

The commands that would download packages are noted and not run.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from dev import bootstrap, progress


class Machine:
    """A folder to set up; ``commands`` are those that were run: venv, pip, uv."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.venv, self.commands, self.interrupted_at = root / ".venv", list[str](), ""
        (root / "pyproject.toml").write_text("")
        (root / "requirements.txt").write_text("uv==0.1\n")
        places = {
            "ROOT": root,
            "RUNTIME": root / "requirements.txt",
            "DEV": root / "dev" / "requirements.txt",
            "VENV": self.venv,
            "PYTHON": self.venv / "bin" / "python",
            "STAMP": self.venv / "drawdown-setup.json",
            "MADE": self.venv / "drawdown-made.json",
            "LOG": root / "setup.log",
        }
        for name, place in places.items():
            monkeypatch.setattr(bootstrap, name, place)
        monkeypatch.setattr(progress, "run", self._run)
        monkeypatch.setattr(bootstrap.subprocess, "run", lambda *_, **__: None)

    def _run(self, arguments: Sequence[str], **_: Any) -> None:
        name = arguments[2]
        self.commands.append(name)
        if name == "venv":
            assert not self.venv.exists(), "nothing of the old one is left"
            (self.venv / "bin").mkdir(parents=True)
            (self.venv / "bin" / "python").touch()
        if name == self.interrupted_at:
            raise KeyboardInterrupt

    def set_up(self, interrupted_at: str = "") -> list[str]:
        self.commands, self.interrupted_at = [], interrupted_at
        try:
            bootstrap._ensure_environment()
        except KeyboardInterrupt:
            assert interrupted_at
        return self.commands


ALL = ["venv", "pip", "uv", "uv"]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


def test_what_is_there_is_not_made_again(machine: Machine) -> None:
    assert machine.set_up() == ALL
    assert machine.set_up() == []


def test_an_environment_that_was_half_made_is_made_again(machine: Machine) -> None:
    machine.set_up(interrupted_at="venv")
    assert machine.set_up() == ALL
    assert machine.set_up() == []


def test_packages_that_were_half_installed_are_installed_again(machine: Machine) -> None:
    machine.set_up(interrupted_at="uv")
    assert machine.set_up() == ALL[1:]
    bootstrap.ROOT.joinpath("requirements.txt").write_text("uv==0.1\nnumpy==2.0\n")
    machine.set_up(interrupted_at="uv")
    # What was installed meanwhile is not what the stamp of before says.
    bootstrap.ROOT.joinpath("requirements.txt").write_text("uv==0.1\n")
    assert machine.set_up() == ALL[1:]


@pytest.mark.parametrize("name", ["drawdown-setup.json", "drawdown-made.json"])
@pytest.mark.parametrize("torn", ["", '{"python": "3.', "[]"])
def test_a_torn_stamp_is_no_stamp(machine: Machine, name: str, torn: str) -> None:
    machine.set_up()
    (machine.venv / name).write_text(torn)
    again = machine.set_up()
    assert again == (ALL[1:] if name == "drawdown-setup.json" else [])
    assert machine.set_up() == []


@pytest.mark.parametrize("differs", ["python", "folder"])
def test_one_of_another_python_or_folder_is_made_again(machine: Machine, differs: str) -> None:
    machine.set_up()
    for name in ("drawdown-setup.json", "drawdown-made.json"):
        stamp = machine.venv / name
        stamp.write_text(json.dumps({**json.loads(stamp.read_text()), differs: "another"}))
    assert machine.set_up() == ALL
    assert machine.set_up() == []


def test_one_whose_python_is_gone_is_made_again(machine: Machine) -> None:
    machine.set_up()
    python = machine.venv / "bin" / "python"
    python.unlink()
    python.symlink_to("/nowhere/python3")
    assert machine.set_up() == ALL


def test_one_of_a_set_up_that_wrote_one_stamp_stays(machine: Machine) -> None:
    machine.set_up()
    (machine.venv / "drawdown-made.json").unlink()
    assert machine.set_up() == []
    bootstrap.ROOT.joinpath("pyproject.toml").write_text("[project]")
    assert machine.set_up() == ALL[1:]
