"""Every call that the model test makes into the library, and nothing of what it expects.

A later move of the library's modules touches this file alone. What needs Spark goes through a
`SparkApplication` with the session of the test, as the command would with one of its own; everything else is
typed as a command.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import threading
import time
import uuid
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import deltalake
from pyspark.sql import SparkSession
from sqlalchemy import Engine, create_engine, event, text
from typer.main import get_command
from typer.testing import CliRunner

from drawdown import fault_points
from drawdown.application import SparkApplication
from drawdown.cli.main import app
from drawdown.errors import DrawdownError
from drawdown.metastore import Metastore
from drawdown.metastore.records import Run
from drawdown.plan.version_in_use import wanted
from drawdown.quarantine.request import ReplayRequest
from drawdown.quarantine.row_states import Choice
from drawdown.spec import load_pipeline
from drawdown.values.interval import Interval
from drawdown.workspace import Workspace
from tests.support.ageing import grow_old
from tests.support.command_line import answer
from tests.support.sandbox import Sandbox

STEPS = (*fault_points._ALL, "table.commit", "table.restore")
"""Durable steps, and those of the library that writes Delta tables: files are there, their commit is not."""


@dataclass(frozen=True)
class Ended:
    """How an action ended: what refused it, what it said, and whether the fault that was set struck."""

    error: DrawdownError | None = None
    said: str = ""
    died: bool = False
    ran: bool = True

    @property
    def id(self) -> str:
        return self.error.id if self.error is not None else ""

    @property
    def word(self) -> str:
        if self.died:
            return "died"
        return self.id or ("done" if self.ran else "nothing to do")

    def __str__(self) -> str:
        return f"died={self.died} {self.error or self.said[:200]}"


class Died(OSError):
    """What an actor that is no more meets wherever it goes."""


@dataclass(eq=False)
class _Actor:
    dead: bool = False


@dataclass
class Moment:
    """A place in an action where something happens: ``before`` or ``after`` a durable step, the nth time."""

    when: str
    step: str
    nth: int = 1
    then: Callable[[], None] | None = None
    struck: bool = False


class _Hook(fault_points.Fault):
    """What `durable` asks; the moment's own deed instead of a signal."""

    def __init__(self, moment: Moment, act: Callable[[], None]) -> None:
        super().__init__("fail", moment.when, moment.step, moment.nth)
        self._act = act

    def _strike(self) -> None:
        self._act()


class _Stores:
    """Which actor each open metastore belongs to; the dead reach none."""

    def __init__(self) -> None:
        self.actors: list[_Actor] = []
        self._of: weakref.WeakKeyDictionary[Any, _Actor] = weakref.WeakKeyDictionary()
        self._lock = threading.Lock()
        event.listen(Engine, "before_cursor_execute", lambda conn, *_: self._look(conn))
        event.listen(Engine, "commit", self._look)

    def _look(self, conn: Any) -> None:
        with self._lock:
            if not self.actors:
                return
            actor = self._of.setdefault(conn.engine.pool, self.actors[-1])
        if actor.dead:
            raise Died("this actor is dead: the metastore hears nothing of it any more")


_stores = _Stores()


@dataclass
class Actions:
    """A project of its own, and what can be done with it."""

    root: Path
    spark: SparkSession
    more: str = ""
    store_url: str = "sqlite:///metastore.db"
    name: str = "out"
    broker: str = "localhost:1"
    sandbox: Sandbox = field(init=False)

    def __post_init__(self) -> None:
        self.sandbox = Sandbox(self.root, self.spark, kafka=self.broker, more=self.more)
        path = self.root / "include" / "project.yaml"
        # A password is never written in a project's file.
        url = self.store_url.replace("postgresql://", "postgresql+psycopg://")
        os.environ["DRAWDOWN_TEST_METASTORE"] = url
        path.write_text(path.read_text().replace("sqlite:///metastore.db", '"${DRAWDOWN_TEST_METASTORE}"'))
        # Opened once by nobody in particular.
        with self.sandbox.metastore():
            pass

    @property
    def storage(self) -> Path:
        return self.sandbox.storage

    # What a person types

    def drain(self, moment: Moment | None = None, name: str | None = None) -> Ended:
        def work(metastore: Metastore) -> Ended:
            application = self._application(metastore)
            [report] = application.drain_all([load_pipeline(self.sandbox.project, name or self.name)])
            return Ended(report.error, ran=report.run is not None or report.error is not None)

        return self._act(work, moment)

    def backfill(self, start: str, end: str, moment: Moment | None = None) -> Ended:
        def work(metastore: Metastore) -> Ended:
            pipeline = load_pipeline(self.sandbox.project, self.name)
            interval = Interval.parse(start, end)
            [report] = self._application(metastore).replay(pipeline, [interval])
            return Ended(report.error)

        return self._act(work, moment)

    def replay_quarantine(
        self, changes: tuple[str, ...] = (), moment: Moment | None = None, with_late: bool = False
    ) -> Ended:
        def work(metastore: Metastore) -> Ended:
            pipeline = load_pipeline(self.sandbox.project, self.name)
            asked = ReplayRequest(Choice(), changes, with_late)
            return Ended(self._application(metastore).replay_set_aside(pipeline, asked).error)

        return self._act(work, moment)

    def rebuild(self, moment: Moment | None = None) -> Ended:
        def work(metastore: Metastore) -> Ended:
            return Ended(self._application(metastore).rebuild(wanted(self.sandbox.project, self.name)).error)

        return self._act(work, moment)

    def command(self, *words: str, moment: Moment | None = None) -> Ended:
        """One that needs no Spark, typed."""

        def work(_: Metastore) -> Ended:
            with contextlib.chdir(self.root), patch("typer.testing._get_command", _command):
                result = CliRunner().invoke(app, list(words))
            failure = result.exception
            if isinstance(failure, DrawdownError):
                return Ended(failure, result.output)
            if failure is not None and not isinstance(failure, SystemExit):
                raise failure
            assert result.exit_code in (0, None) or words[0] == "upkeep", result.output
            return Ended(None, result.output)

        return self._act(work, moment)

    def typed(self, sentence: str, moment: Moment | None = None) -> Ended:
        """A command as an error names it, whichever it is."""
        words = shlex.split(sentence.replace("...", "because").replace("NAME", self.name))
        if words[0] == "run":
            return self.drain(moment, words[1] if len(words) > 1 else self.name)
        if words[:2] == ["rebuild", "start"]:
            return self.rebuild(moment)
        if words[:2] == ["quarantine", "replay"]:
            return self.replay_quarantine(moment=moment)
        if words[0] == "backfill":
            return self.backfill(words[words.index("--from") + 1], words[words.index("--to") + 1], moment)
        needs_why = words[0] in ("release", "discard") or words[:2] in (
            ["rebuild", "approve"], ["rebuild", "discard"], ["rebuild", "rollback"],
        )  # fmt: skip
        if needs_why and "--why" not in words:
            words += ["--why", "the error says so"]
        return self.command(*words, moment=moment)

    def upkeep(self, age: timedelta, moment: Moment | None = None) -> Ended:
        """After so long a time."""
        grow_old(self.sandbox, age)
        done = self.command("upkeep", "--all", "--json", moment=moment)
        if done.died or done.error is not None:
            return done
        found = answer(done.said[done.said.index("{") :])
        errors = [each["error"] for each in found["pipelines"] if each["error"]]
        if errors:
            return Ended(DrawdownError(errors[0]["id"], errors[0]["what"], do=errors[0]["do"]), done.said)
        return done

    # What can be seen

    def runs(self, name: str | None = None) -> list[Run]:
        with self.sandbox.metastore() as metastore:
            return metastore.runs(name or self.name, limit=10_000)

    def last_batch(self) -> int:
        """The last batch that Spark has committed in the live generation; -1: none."""
        with self.sandbox.metastore() as metastore:
            checkpoint = metastore.active_checkpoint(self.name)
            if checkpoint is None:
                return -1
            commits = self.storage / checkpoint.path / "commits"
        return max((int(path.name) for path in commits.glob("[0-9]*")), default=-1)

    def quarantine(self) -> list[dict[str, Any]]:
        """Rows as `quarantine show` gives them. Raises DrawdownError."""
        done = self.command("quarantine", "show", self.name, "--limit", "100000", "--json")
        if done.error is not None:
            raise done.error
        return list(answer(done.said))

    def held(self) -> int:
        with self.sandbox.metastore() as metastore:
            return len(metastore.held_slices(self.name))

    # Actors

    def _application(self, metastore: Metastore) -> SparkApplication:
        return SparkApplication(Workspace(self.sandbox.project, metastore), session=self.spark)

    def _act(self, work: Callable[[Metastore], Ended], moment: Moment | None) -> Ended:
        """Let an actor do something, which at a moment dies or makes way for what others do."""
        actor, frozen = _Actor(), list[Path]()

        def strike() -> None:
            assert moment is not None
            moment.struck = True
            if moment.then is not None:
                with _unarmed():
                    moment.then()
                return
            frozen.append(self._frozen())
            actor.dead = True
            raise Died(f"killed {moment.when} {moment.step}")

        before = self._leases()
        _stores.actors.append(actor)
        try:
            with (
                _armed(_Hook(moment, strike) if moment is not None else None),
                Metastore.open(self.sandbox.project.metastore_url) as metastore,
            ):
                ended = work(metastore)
        except Died:
            ended = Ended()
        except DrawdownError as error:
            ended = Ended(error)
        finally:
            _stores.actors.remove(actor)
        if actor.dead:
            self._thaw(frozen[0])
            self._free_leases(before)
            return Ended(died=True)
        return ended

    def _frozen(self) -> Path:
        """The storage as it is at this moment, as links to the same files."""
        aside = self.root / f"frozen-{uuid.uuid4().hex}"
        shutil.copytree(self.storage, aside, copy_function=_link)
        return aside

    def _thaw(self, aside: Path) -> None:
        shutil.rmtree(self.storage)
        aside.rename(self.storage)
        self.forget_tables()

    def forget_tables(self) -> None:
        """What the session remembers of Delta tables."""
        assert self.spark._jvm is not None
        self.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()

    def _leases(self) -> set[tuple[str, int]]:
        with self._store() as engine, engine.begin() as conn:
            rows = conn.execute(text("SELECT pipeline, epoch FROM leases WHERE NOT released"))
            return {(str(row[0]), int(row[1])) for row in rows}

    def _free_leases(self, others: set[tuple[str, int]]) -> None:
        """Those of the dead, instead of waiting for their time-to-live."""
        with self._store() as engine, engine.begin() as conn:
            for name, epoch in self._of_the_dead(others):
                conn.execute(
                    text("UPDATE leases SET released = true WHERE pipeline = :name AND epoch = :epoch"),
                    {"name": name, "epoch": epoch},
                )

    def _of_the_dead(self, others: set[tuple[str, int]]) -> set[tuple[str, int]]:
        return self._leases() - others

    @contextlib.contextmanager
    def _store(self) -> Iterator[Engine]:
        url = self.sandbox.project.metastore_url.replace("postgresql://", "postgresql+psycopg://")
        engine = create_engine(url)
        try:
            yield engine
        finally:
            engine.dispose()


_command = cache(get_command)
"""Once: to read the signatures of all commands takes longer than most commands."""


def commands_of(error: DrawdownError) -> list[str]:
    """The commands that a refusal names, without the program's name."""
    return re.findall(r"`?drawdown ((?:[a-z]+ ?)+[^`;,)]*)", error.do)


def ids_of(rows: list[dict[str, Any]]) -> Counter[str]:
    """What a table holds, by the id of each row."""
    return Counter(str(row["id"]) for row in rows)


def _link(source: str, target: str) -> None:
    Path(target).hardlink_to(source)


@contextlib.contextmanager
def _armed(hook: _Hook | None) -> Iterator[None]:
    before = fault_points._armed
    fault_points._armed = lambda: hook  # type: ignore[assignment]
    try:
        with _at_the_table(hook) if hook is not None else contextlib.nullcontext():
            yield
    finally:
        fault_points._armed = before


@contextlib.contextmanager
def _at_the_table(hook: _Hook) -> Iterator[None]:
    """Steps inside the library that writes Delta tables: the same wherever Drawdown calls it from."""

    def around(step: str, called: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            with hook.around() if hook.step == step else contextlib.nullcontext():
                return called(*given, **named)

        return call

    def write(table: Any, data: Any, **named: Any) -> Any:
        """The files are there, the commit is not: what is written goes out in files of a row or so."""
        if hook.step != "table.commit":
            return written(table, data, **named)
        folder = Path(str(table.table_uri).removeprefix("file://"))
        before = set(folder.glob("*.parquet"))

        def batches() -> Iterator[Any]:
            yield from data
            until = time.monotonic() + 5
            while time.monotonic() < until and not set(folder.glob("*.parquet")) - before:
                time.sleep(0.05)
            _apart(hook)

        import pyarrow as pa

        reader = pa.RecordBatchReader.from_batches(data.schema, batches())
        return written(table, reader, **named, target_file_size=1)

    written = deltalake.write_deltalake
    table = deltalake.DeltaTable
    with (
        patch.object(deltalake, "write_deltalake", write),
        patch.object(table, "restore", around("table.restore", table.restore)),
        patch.object(
            table, "create_write_transaction", around("table.commit", table.create_write_transaction)
        ),
    ):
        yield


def _apart(hook: _Hook) -> None:
    """In a thread of Python's own: one of the writing library's could not be used to open a table."""
    failures: list[BaseException] = []

    def work() -> None:
        try:
            with hook.around():
                pass
        except BaseException as failure:  # noqa: BLE001  raised again below
            failures.append(failure)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    if failures:
        raise failures[0]


def _unarmed() -> contextlib.AbstractContextManager[None]:
    return _armed(None)
