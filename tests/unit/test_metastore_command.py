"""`drawdown metastore upgrade`, and what every other command does with an older store."""

from __future__ import annotations

from pathlib import Path

import alembic.command
import pytest
from alembic.config import Config
from typer.testing import CliRunner

from dev import services
from drawdown.cli.main import app
from drawdown.errors import MachineError
from drawdown.metastore import Metastore, connect, migrations
from tests.support.command_line import answer


@pytest.fixture
def older(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose metastore has the schema before the register of changes."""
    (tmp_path / "include/pipelines").mkdir(parents=True)
    (tmp_path / "include/project.yaml").write_text(
        "storage_root: storage\nmetastore: sqlite:///metastore.db\n"
    )
    monkeypatch.chdir(tmp_path)
    store = tmp_path / "metastore.db"
    # By its own revisions, so that later ones find what they expect.
    engine, config = connect.connect(f"sqlite:///{store}"), Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    with engine.connect() as conn, conn.begin():
        config.attributes["connection"] = conn
        alembic.command.upgrade(config, "0009")
    engine.dispose()
    return store


@pytest.mark.capability("OWN-03")
@pytest.mark.parametrize("command", [["runs"], ["cost"], ["upkeep", "--all"], ["runs", "--prometheus"]])
def test_commands_that_look_refuse_an_older_store_and_write_nothing(older: Path, command: list[str]) -> None:
    if command[0] == "upkeep":
        pipeline = older.parent / "include/pipelines/sales"
        pipeline.mkdir()
        (pipeline / "pipeline.yaml").write_text(
            "sources: {events: {format: text, path: landing}}\n"
            "transform: transform.sql\nsink: {format: text, path: out}\n"
        )
        (pipeline / "transform.sql").write_text("SELECT value FROM events")
    before = older.read_bytes()
    done = CliRunner().invoke(app, command)
    assert isinstance(done.exception, MachineError), done.output
    assert (done.exception.id, done.exception.exit_code) == ("metastore.older", 8)
    assert "drawdown metastore upgrade" in done.exception.do
    assert older.read_bytes() == before


def test_an_upgrade_is_told_and_everything_works_again(older: Path) -> None:
    first = CliRunner().invoke(app, ["metastore", "upgrade", "--json"])
    assert answer(first.stdout) == {"before": "0009", "now": migrations.HEAD}
    again = CliRunner().invoke(app, ["metastore", "upgrade"])
    assert f"schema {migrations.HEAD} already" in again.stdout
    assert CliRunner().invoke(app, ["runs"]).exit_code == 0


def test_make_up_upgrades_before_airflow_starts(older: Path, capsys: pytest.CaptureFixture[str]) -> None:
    services.upgrade_metastore(older.parent)
    assert f"schema {migrations.HEAD} now, it had 0009" in capsys.readouterr().out
    Metastore.open(f"sqlite:///{older}").close()
