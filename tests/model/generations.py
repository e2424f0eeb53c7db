"""Going back, and over to another generation: marks, rewinds, snapshots, rebuilds."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

from tests.model.actions import Ended, Moment
from tests.model.ground import Ground
from tests.model.looks import Wrong
from tests.model.model import Model


class Generations(Ground):
    def mark(self) -> None:
        """A place to go back to."""
        if self.clean and not self.pending:
            self.marks.append((self.actions.last_batch(), self.model.mark()))

    def rewind(self, number: int = -1, die: tuple[Any, ...] | None = None) -> Ended:
        batch, mark = self.marks[number]
        if batch < 0:
            return Ended()
        return self._go_back("rewind", ("--to", str(batch)), mark, die)

    def take_snapshot(self) -> Ended:
        ended = self.actions.command("checkpoint", "snapshot", "out")
        if ended.error is None:
            self.snapshot = self.model.mark()
            return ended
        return self._refused(ended, "snapshot")

    def restore(self, die: tuple[Any, ...] | None = None) -> Ended:
        return self._go_back("restore", ("latest",), self.snapshot, die)

    def _go_back(self, how: str, to: tuple[str, ...], mark: Any, die: tuple[Any, ...] | None) -> Ended:
        moment = Moment(*die) if die else None
        back = ("checkpoint", how, "out", *to, "--sink")
        ended = self.actions.command(*back, moment=moment)
        if ended.id == "sink.readers":
            ended = self.actions.command(*back, "--yes", moment=moment)
        if ended.died:
            self.pending, self.back_to = how, (how, to, mark)
            return ended
        if ended.error is None:
            self._gone_back(mark, ended.said)
            self.pending = ""
            return ended
        return self._refused(ended, how)

    def _behind(self, mark: Any) -> Model:
        """The model as it is when all has gone back."""
        model = copy.deepcopy(self.model)
        if len(mark.batches) < len(model.live.batches):
            model.go_back(mark)
        # Else nothing came behind it, so nothing is taken back.
        return model

    def _gone_back(self, mark: Any, said: str) -> None:
        self.marks = [each for each in self.marks if len(each[1].batches) <= len(mark.batches)]
        if len(mark.batches) == len(self.model.live.batches):
            return
        undone = self.model.undone_by(mark)
        notices = json.dumps([run.notices for run in self.actions.runs()[:4]])
        if undone and "replay" not in said + notices:
            raise Wrong(f"it is not said that the replays {undone} are undone: {said}")
        self.model = self._behind(mark)
        # A stream that has read what is taken back reads it again when it comes again.
        self.tainted = self.tainted or self.reads

    def rebuild(self, die: tuple[Any, ...] | None = None, then: Callable[[], None] | None = None) -> Ended:
        version = self.model.shadow.version if self.model.shadow else self.model.live.version + 1
        if self.model.shadow is None:
            self._promote()
            self._write(version, "out/next")
        ended = self.actions.rebuild(Moment(*die, then=then) if die else None)
        if ended.id == "audit.fail":
            self.model.rebuild(version)
            assert self.model.shadow is not None
            self.model.shadow.failed = True
        elif ended.id == "rebuild.audit-failed" and self.model.shadow and self.model.shadow.failed:
            return ended
        elif ended.error is None and not ended.died:
            self.model.rebuild(version)
            return ended
        return self._refused(ended, "rebuild")

    def _promote(self) -> None:
        """The version that is in use moves from `next/` to the folder."""
        if self.model.live.version > 1 and self.model.live.version != self.in_folder:
            self._write(self.model.live.version)
            self.in_folder = self.model.live.version
            self.model.before = None

    def approve(self, die: tuple[Any, ...] | None = None) -> Ended:
        return self._end_rebuild("approve", die, self._swapped)

    def _swapped(self) -> None:
        assert self.model.shadow is not None
        if self.model.shadow.failed:
            raise Wrong("a rebuild that failed its audit was swapped in")
        self.model.swap()
        self._new_generation()

    def roll_back(self, die: tuple[Any, ...] | None = None) -> Ended:
        return self._end_rebuild("rollback", die, self._rolled_back)

    def _rolled_back(self) -> None:
        self.model.roll_back()
        self._new_generation()

    def give_up(self) -> Ended:
        def given_up() -> None:
            self.model.shadow = None

        return self._end_rebuild("discard", None, given_up)

    def _end_rebuild(self, choice: str, die: tuple[Any, ...] | None, done: Callable[[], None]) -> Ended:
        moment = Moment(*die) if die else None
        ended = self.actions.command("rebuild", choice, "out", "--why", "a test", moment=moment)
        if ended.died:
            self.pending = choice
        elif ended.error is None:
            self.pending = ""
            done()
        else:
            return self._refused(ended, choice)
        return ended

    def finish(self) -> Ended:
        """What was cut off, again."""
        if self.pending in ("rewind", "restore"):
            ended = self._go_back(*self.back_to, None)
        else:
            ended = {"approve": self.approve, "rollback": self.roll_back}[self.pending]()
        if ended.error is None:
            self.pending = ""
        return ended

    def _settle_pending(self) -> None:
        """A drain goes on where nothing had begun, or all had ended, when an actor died."""
        if self.pending in ("approve", "rollback"):
            other = self.model.shadow if self.pending == "approve" else self.model.before
            assert other is not None
            found = self.sink.rows(self.actions.storage)
            if found and {version for _, version in found} == {other.version}:
                (self._swapped if self.pending == "approve" else self._rolled_back)()
        elif self.pending in ("rewind", "restore"):
            mark = self.back_to[2]
            found = self.sink.rows(self.actions.storage)
            if found != self.model.live.table and found == self._behind(mark).live.table:
                self._gone_back(mark, "replay")
        self.pending = ""

    def _new_generation(self) -> None:
        self.marks.clear()
        self.snapshot = None
