"""What one command sees of an environment: targets, roots and their state, each read once."""

from __future__ import annotations

import itertools
from pathlib import Path

from gatepatch import store, trialmark
from gatepatch.environment import Environment
from gatepatch.errors import GatepatchError
from gatepatch.journal import pending
from gatepatch.state import State
from gatepatch.target import Root, Target, find_target, roots


class Workspace:
    """An environment as one command sees it; nothing is written through it.

    Args:
        environment: The environment.
        trial: The id of the trial that this is part of; every other one keeps it out.
    """

    def __init__(self, environment: Environment, trial: str | None = None):
        self.environment = environment
        self.trial = trial
        self._targets: dict[str, Target | None] = {}
        self._states: dict[Path, State] = {}
        self._roots: tuple[Root, ...] | None = None

    def fresh(self) -> Workspace:
        """The same environment, read anew."""
        return Workspace(self.environment, self.trial)

    def target(self, distribution: str) -> Target | None:
        """An installed distribution; None if it is not installed."""
        if distribution not in self._targets:
            self._targets[distribution] = find_target(self.environment, distribution)
        return self._targets[distribution]

    def state(self, root: Root) -> State:
        """What is applied under a root."""
        if root.path not in self._states:
            where = str(root.state_dir / "state.json")
            self._states[root.path] = State.from_bytes(store.read_state(root.state_dir), where)
        return self._states[root.path]

    def roots(self) -> tuple[Root, ...]:
        """Every root of the environment in which gatepatch has left anything by now."""
        if self._roots is None:
            self._roots = tuple(roots(self.environment))
        found: dict[Path, Root] = {}
        for root in self._roots:
            if root.kind == "checkout" or root.state_dir.is_dir():
                found.setdefault(root.path, root)
        return tuple(root for root in found.values() if root.state_dir.is_dir())

    def pending(self) -> str | None:
        """One line on an interrupted change; None if there is none."""
        roots = self.roots()
        changes = (line for line in map(pending, roots) if line)
        trials = (line for line in map(trialmark.pending, roots) if line)
        return next(itertools.chain(changes, trials), None)

    def running(self) -> str | None:
        """One line on a trial that another process runs here; None if none does."""
        marks = (mark for mark in map(trialmark.running, self.roots()) if mark)
        return next((trialmark.told(mark) for mark in marks if mark.id != self.trial), None)

    def blob(self, root: Root, digest: str) -> bytes | None:
        """Some bytes of a root's store; None if they are not there or are damaged."""
        try:
            return store.read_blob(root.state_dir, digest)
        except (GatepatchError, OSError):
            return None

    def stamp(self) -> object:
        """What differs once anything was committed, even if it was taken back since.

        The state folder comes and goes with what is applied, and leaves its mark on the folder
        that it lies in. A set that went and came back within a second leaves an equal document,
        but another file.
        """
        folders = [(folder, folder.stat().st_mtime_ns) for folder in self.environment.paths]
        return folders, [(root.path, _identity(root)) for root in self.roots()]


def _identity(root: Root) -> list[tuple[int, int] | None]:
    """Which state folder and which document stand there, and since when."""
    found: list[tuple[int, int] | None] = []
    for path in (root.state_dir, root.state_dir / store.STATE):
        try:
            stat = path.stat()
        except FileNotFoundError:
            found.append(None)
        else:
            found.append((stat.st_ino, stat.st_mtime_ns))
    return found
