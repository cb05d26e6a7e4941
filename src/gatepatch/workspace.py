"""What one command sees of an environment: targets, roots and their state, each read once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from gatepatch.environment import Environment
from gatepatch.errors import GatepatchError, RefusedError, StaleError
from gatepatch.state import State
from gatepatch.target import Root, Target, find_target, roots
from gatepatch.transaction import pending, read_blob, read_state, recover

TRIES = 20
"""How often an operation is planned anew because another process changed something meanwhile."""

T = TypeVar("T")


class Workspace:
    """An environment as one command sees it; nothing is written through it."""

    def __init__(self, environment: Environment):
        self.environment = environment
        self._targets: dict[str, Target | None] = {}
        self._states: dict[Path, State] = {}

    def target(self, distribution: str) -> Target | None:
        """An installed distribution; None if it is not installed."""
        if distribution not in self._targets:
            self._targets[distribution] = find_target(self.environment, distribution)
        return self._targets[distribution]

    def state(self, root: Root) -> State:
        """What is applied under a root."""
        if root.path not in self._states:
            where = str(root.state_dir / "state.json")
            self._states[root.path] = State.from_bytes(read_state(root), where)
        return self._states[root.path]

    def roots(self) -> tuple[Root, ...]:
        """Every root of the environment in which gatepatch has left anything."""
        return tuple(root for root in roots(self.environment) if root.state_dir.is_dir())

    def pending(self) -> str | None:
        """One line on an interrupted change; None if there is none."""
        return next((line for line in map(pending, self.roots()) if line), None)

    def blob(self, root: Root, digest: str) -> bytes | None:
        """Some bytes of a root's store; None if they are not there or are damaged."""
        try:
            return read_blob(root, digest)
        except (GatepatchError, OSError):
            return None

    def stamp(self) -> object:
        """What differs once anything was committed, even if it was taken back since.

        The state folder comes and goes with what is applied, and leaves its mark on the folder
        that it lies in.
        """
        folders = [(folder, folder.stat().st_mtime_ns) for folder in self.environment.paths]
        return folders, [(root.path, read_state(root)) for root in self.roots()]


def settled(workspace: Workspace, operation: Callable[[Workspace], T], timeout: float) -> T:
    """Run an operation on a settled environment, anew while other processes change it.

    A plan that is made while another process replaces files sees some of them as foreign.

    Args:
        workspace: For the first try; every other gets a fresh one.
        operation: Plans, and commits what it has planned.
        timeout: Seconds to wait for each lock.
    """
    for last in (*[False] * (TRIES - 1), True):
        if workspace.pending():
            recover(workspace.roots(), timeout=timeout)
            workspace = Workspace(workspace.environment)
        seen = workspace.stamp()
        try:
            return operation(workspace)
        except (StaleError, RefusedError) as error:
            workspace = Workspace(workspace.environment)
            moved = isinstance(error, StaleError) or workspace.stamp() != seen
            if last or not (moved or workspace.pending()):
                raise
    raise AssertionError("unreachable")
