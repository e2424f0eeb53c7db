"""A walk through the life of clusters: the real records, guard and steps of `down`, over machines that are
told.

Two deployments with the same DAG ids share one account. Whoever acts is a generator that stops between any
two effects that last, so the walk may go on with another one there, kill it, or lose its host. Time is the
walk's: whoever lives takes a step at least every ten minutes, unless its host is suspended.

One thing is left to the machines' own deadline (docs/clusters.md): a host that is suspended in `up` for
longer than `up_within`, comes back, and is killed before its guard has asked about its record.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from drawdown.errors import DrawdownError, MachineError
from drawdown.fleet.started_clusters import LATE, red_clusters, why_red
from drawdown.launch.commands import life
from drawdown.launch.commands.answer import UpAnswer
from drawdown.launch.commands.guard import ClusterGuard, ReconnectingStore
from drawdown.launch.commands.reaper import overdue
from drawdown.launch.commands.request import CommandsRequest, Programs
from drawdown.metastore import Metastore
from drawdown.metastore.operations import clusters as operations
from drawdown.metastore.records import StartedCluster
from drawdown.spec import CommandsCluster

TTL, WITHIN = timedelta(hours=4), timedelta(minutes=5)
LOOKS_EVERY = timedelta(minutes=10)
"""Of `drawdown__freshness`, and the longest that anybody takes for a step."""

PROFILE = CommandsCluster.model_validate(
    {
        "kind": "commands", "up": "up", "alive": "alive", "down": "down", "workers": 1, "ttl": "4 hours",
        "up_within": "15 minutes", "down_within": "5 minutes",
    }
)  # fmt: skip


class Killed(BaseException):
    """SIGKILL, in the middle of `up`."""


class Wrong(AssertionError):
    """What must never be."""


@dataclass
class Machine:
    cluster: StartedCluster
    deployment: Deployment
    users: set[int] = field(default_factory=set)


@dataclass(eq=False)
class Actor:
    """A process.

    Attributes:
        of: the run and the try that it works for; None: nobody's.
        pipe: of a process that has started a guard.
    """

    what: str
    host: int
    steps: Iterator[bool | None]
    of: tuple[str, int] | None = None
    pipe: Pipe | None = None
    after_waking: int = 0


class Pipe:
    """Between a guard and its starter."""

    def __init__(self) -> None:
        self.kept = self.gone = False
        self.heard: list[dict[str, Any]] = []

    def is_kept(self) -> bool:
        return self.kept

    def must_end(self) -> bool:
        return self.gone and not self.kept

    def hear(self, said: dict[str, Any]) -> None:
        self.heard.append(said)


class Store:
    """The guard's records, over one connection."""

    def __init__(self, metastore: Metastore) -> None:
        self.metastore = metastore
        self.change, self.restore = metastore.clusters.change, metastore.clusters.restore

    def read(self, instance: str) -> tuple[StartedCluster | None, datetime]:
        return self.metastore.clusters.read(instance), self.metastore.now()


@dataclass
class Deployment:
    name: str
    metastore: Metastore

    @property
    def project(self) -> Any:
        return SimpleNamespace(storage_root=f"s3://{self.name}")


class World:
    """One account, two deployments, three hosts."""

    def __init__(self, chance: random.Random, stores: list[Metastore]) -> None:
        self.chance = chance
        self.now = datetime(2024, 1, 1, tzinfo=UTC)
        self.deployments = [Deployment(f"d{number}", store) for number, store in enumerate(stores)]
        self.machines: dict[str, Machine] = {}
        self.actors: list[Actor] = []
        self.tries: dict[tuple[str, str], int] = {}
        self.suspended: set[int] = set()
        self.away = False
        self.looked_at = self.now
        self.taken: list[str] = []
        self.downs = 0

    # What the programs of the project do.

    def programs(self, deployment: Deployment, cluster: StartedCluster) -> Programs:
        def up(give_up: Callable[[], bool]) -> UpAnswer:
            how = self.chance.choice(["well", "well", "well", "fails", "fails after", "killed"])
            if how == "fails":
                raise MachineError("cluster.up-failed", "no quota", do="-")
            self.machines[cluster.name] = Machine(cluster, deployment)
            if how == "killed":
                raise Killed
            if how == "fails after":
                raise MachineError("cluster.up-failed", "no answer", do="-")
            return UpAnswer(master="spark://10.0.0.1:7077")

        def down() -> None:
            self.downs += 1
            if self.away or self.chance.random() < 0.1:
                raise MachineError("cluster.down-failed", "the cloud is away", do="-")
            there = self.machines.pop(cluster.name, None)
            if there is not None and there.users and self.now < there.cluster.deadline:
                raise Wrong(f"{cluster.name} was ended, and is used by {there.deployment.name}")

        found = SimpleNamespace(up=up, down=down, down_within=WITHIN, why_not_alive=lambda: "")
        return cast(Programs, found)

    # Who acts.

    def started(
        self, deployment: Deployment, run: str, task: str, pipe: Pipe, host: int
    ) -> Generator[bool | None]:
        """A task that starts a cluster, up to the answer of its guard."""
        number = self.tries[deployment.name, run]
        by = {"dag_id": "flights", "dag_run_id": run, "task_id": task, "try_number": number}
        request = CommandsRequest(deployment.project, "cellar", PROFILE, f"flights.{run}", 1, by)
        begun = request.record(self.now)
        yield
        deployment.metastore.clusters.begin(begun, request.replaces)
        yield
        guard = ClusterGuard(
            cast(ReconnectingStore, Store(deployment.metastore)),
            begun.instance,
            lambda cluster: self.programs(deployment, cluster),
            pipe,
            lambda: (self.now - datetime(2024, 1, 1, tzinfo=UTC)).total_seconds() + 7200 * host,
        )
        self.actors.append(Actor(f"guard {begun.instance}", host, guard.steps()))
        while not pipe.heard:
            yield

    def cluster_up(self, deployment: Deployment, run: str, pipe: Pipe, host: int) -> Generator[bool | None]:
        yield from self.started(deployment, run, "cluster_up", pipe, host)
        if "up" in pipe.heard[0]:
            pipe.kept = True
            self.begin("drain", deployment, run)

    def drain(self, deployment: Deployment, run: str, pipe: Pipe, host: int) -> Generator[bool | None]:
        cluster = deployment.metastore.clusters.live(f"flights.{run}")
        if cluster is None or cluster.answer is None:
            yield from self.started(deployment, run, "drain", pipe, host)
            if "up" not in pipe.heard[0]:
                return
            cluster = deployment.metastore.clusters.live(f"flights.{run}")
        machine = self.machines.get(cluster.name) if cluster is not None else None
        if machine is None:
            return
        machine.users.add(id(pipe))
        try:
            for _ in range(self.chance.randrange(40)):
                yield
        finally:
            machine.users.discard(id(pipe))

    def cluster_down(self, deployment: Deployment, run: str) -> Generator[bool | None]:
        found = deployment.metastore.clusters.of_key(f"flights.{run}")
        for cluster in found:
            yield
            try:
                programs = self.programs(deployment, cluster)
                yield from life.ending(deployment.metastore.clusters, cluster, programs)
            except DrawdownError:
                pass

    def look(self, deployment: Deployment) -> Generator[bool | None]:
        """`end_overdue_clusters` of drawdown__freshness."""
        for cluster in overdue(deployment.metastore):
            yield
            try:
                programs = self.programs(deployment, cluster)
                store = deployment.metastore.clusters
                yield from life.ending(store, cluster, programs, only_if_due=True)
            except DrawdownError:
                pass

    # What happens.

    def begin(self, kind: str, deployment: Deployment, run: str) -> None:
        host, pipe = self.chance.randrange(3), Pipe()
        tries = self.tries[deployment.name, run]
        steps = {
            "cluster_up": lambda: self.cluster_up(deployment, run, pipe, host),
            "drain": lambda: self.drain(deployment, run, pipe, host),
            "cluster_down": lambda: self.cluster_down(deployment, run),
        }[kind]()
        of = (f"{deployment.name} {run}", tries)
        self.actors.append(Actor(f"{kind} {of}", host, steps, of, pipe))

    def end(self, actor: Actor) -> None:
        if actor in self.actors:
            self.actors.remove(actor)
            if actor.pipe is not None:
                actor.pipe.gone = True
            actor.steps.close()  # type: ignore[attr-defined]

    def step(self, actor: Actor) -> None:
        if actor not in self.actors or actor.host in self.suspended:
            return
        actor.after_waking += 1
        try:
            next(actor.steps)
        except (StopIteration, Killed, DrawdownError):
            self.end(actor)

    def of_run(self, deployment: Deployment, run: str) -> list[Actor]:
        return [each for each in self.actors if each.of and each.of[0] == f"{deployment.name} {run}"]

    def pass_time(self, by: timedelta) -> None:
        """In pieces: whoever lives takes a step in each, and the project's own DAG looks."""
        until = self.now + by
        while self.now < until:
            self.now = min(until, self.now + LOOKS_EVERY)
            for actor in list(self.actors):
                self.step(actor)
            if self.now - self.looked_at >= LOOKS_EVERY:
                self.looked_at = self.now
                for deployment in self.deployments:
                    self.actors.append(Actor("look", self.chance.randrange(3), self.look(deployment)))
            self.check()

    def act(self) -> None:
        """Take one step of the walk."""
        chance = self.chance
        deployment, run = chance.choice(self.deployments), f"run-{chance.randrange(3)}"
        known = (deployment.name, run) in self.tries
        what = chance.choices(
            ["step", "pass", "run", "try again", "clear", "failed", "success", "delete", "drain", "down",
             "kill", "host lost", "suspend", "wake", "cloud", "preflight"],
            [60, 8, 6, 4, 3, 2, 2, 2, 8, 4, 5, 1, 2, 4, 2, 2],
        )[0]  # fmt: skip
        self.taken.append(what)
        if what == "step" and self.actors:
            self.step(chance.choice(self.actors))
        elif what == "pass":
            self.pass_time(timedelta(seconds=chance.choice([1, 20, 60, 600, 3600, 5 * 3600])))
        elif what == "run" and not known:
            self.tries[deployment.name, run] = 1
            self.begin("cluster_up", deployment, run)
        elif what in ("try again", "clear") and known:
            if what == "clear" or chance.random() < 0.5:  # else the first goes on, and comes back
                for actor in self.of_run(deployment, run):
                    self.end(actor)
            for actor in self.of_run(deployment, run):
                if not actor.what.startswith("cluster_up"):
                    self.end(actor)
            self.tries[deployment.name, run] += 1
            self.begin("cluster_up", deployment, run)
        elif what in ("failed", "success", "delete") and known:
            for actor in self.of_run(deployment, run):
                self.end(actor)
            if what == "failed" or (what == "success" and chance.random() < 0.5):
                self.begin("cluster_down", deployment, run)
            if what == "delete":
                del self.tries[deployment.name, run]
        elif what == "drain" and known and not self.of_run(deployment, run):
            self.begin("drain", deployment, run)
        elif what == "down" and known and not self.of_run(deployment, run):
            self.begin("cluster_down", deployment, run)
        elif what == "kill" and self.actors:
            actor = chance.choice(self.actors)
            if actor.host not in self.suspended and actor.after_waking >= 2:
                self.end(actor)
        elif what == "host lost":
            host = chance.randrange(3)
            for actor in [each for each in self.actors if each.host == host]:
                self.end(actor)
        elif what == "suspend":
            self.suspended.add(chance.randrange(3))
        elif what == "wake" and self.suspended:
            self.wake(self.suspended.pop())
        elif what == "cloud":
            self.away = not self.away
        elif what == "preflight":
            before = self.downs
            red_clusters(deployment.metastore)
            if self.downs != before:
                raise Wrong("a preflight has called `down`")
        self.check()

    def wake(self, host: int) -> None:
        for actor in self.actors:
            if actor.host == host:
                actor.after_waking = 0

    def check(self) -> None:
        """What stands is known, and seen as left once its time is over."""
        for name, machine in self.machines.items():
            store = machine.deployment.metastore.clusters
            found = store.read(machine.cluster.instance)
            if found is None and not self.is_starting(machine):
                raise Wrong(f"{name} stands, and nobody knows it")
            over = found is not None and self.now > found.deadline + LATE and found.state != "ending"
            if found is not None and over and not why_red(found, self.now):
                raise Wrong(f"{name} is past its deadline, and nobody is told")

    def is_starting(self, machine: Machine) -> bool:
        """Whether its guard has come back, late, and is about to ask about the record."""
        return any(each.what == f"guard {machine.cluster.instance}" for each in self.actors)

    def settle(self) -> None:
        """Nothing more happens: after the longest life and one pause nothing may stand, nor be recorded."""
        self.away = False
        self.suspended.clear()
        self.chance = cast(random.Random, Calm())
        for actor in [each for each in self.actors if each.of]:
            self.end(actor)
        self.pass_time(TTL + LATE)
        self.pass_time(life.LONGEST_PAUSE + WITHIN + 6 * LOOKS_EVERY)
        if self.machines:
            raise Wrong(f"{sorted(self.machines)} stand past their ttl and one pause")
        for deployment in self.deployments:
            if left := deployment.metastore.clusters.standing():
                raise Wrong(f"recorded for ever: {left}")


class Calm:
    """Chance, when nothing goes wrong any more."""

    def choice(self, values: list[Any]) -> Any:
        return values[0]

    def random(self) -> float:
        return 1.0

    def randrange(self, below: int) -> int:
        return 0


def walk(
    stores: list[Metastore], patch: pytest.MonkeyPatch, seed: int, steps: int, each: int = 100
) -> list[str]:
    """Go so many steps, in parts that end well or raise Wrong; return what was done."""
    taken: list[str] = []
    for part in range(steps // each):
        world = World(random.Random(f"{seed}/{part}"), stores)
        patch.setattr(operations, "read_clock", lambda conn, world=world: world.now)
        patch.setattr(Metastore, "now", lambda self, world=world: world.now)
        try:
            for _ in range(each):
                world.act()
            world.settle()
        except Wrong as wrong:
            raise Wrong(f"seed {seed}, part {part}, after {len(world.taken)} steps: {wrong}") from None
        taken += world.taken
    return taken


def stores_of(folder: Path) -> list[Metastore]:
    return [Metastore.open(f"sqlite:///{folder / name}.db") for name in ("one", "two")]
