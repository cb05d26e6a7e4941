"""The two sides of a trial: put the set in, take it out, bring everything back."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from gatepatch import applier, transaction, trialmark
from gatepatch.devices import Checked
from gatepatch.errors import (
    GatepatchError,
    PendingError,
    Problem,
    RefusedError,
    SignalError,
    StaleError,
)
from gatepatch.state import State
from gatepatch.target import Root
from gatepatch.unfinished import put
from gatepatch.workspace import Workspace

if TYPE_CHECKING:
    from gatepatch.trials.schedule import Side


class Sides:
    """An environment that goes from one side to the other.

    Args:
        workspace: The environment, as the trial's own.
        name: The set's name.
        roots: Every root that the set touches.
        options: How to apply it.
        checked: What the devices have answered.

    Attributes:
        before: What each root carried before the trial.
        seconds: How long each switch took.
        warnings: What applying the set warned of.
    """

    def __init__(
        self,
        workspace: Workspace,
        name: str,
        roots: tuple[Root, ...],
        options: applier.Options,
        checked: Checked,
    ):
        self.workspace = workspace
        self.name = name
        self.options = options
        self.checked = checked
        self.before = {root: workspace.state(root) for root in roots}
        self.seconds: list[float] = []
        self.warnings: tuple[str, ...] = ()
        self._out = {root: State() for root in roots}
        self._in: dict[Root, State] | None = None
        self._is_out = not self.applied_before

    @property
    def applied_before(self) -> bool:
        """Whether the set was applied before the trial."""
        return any(self.name in state.sets for state in self.before.values())

    def check(self) -> None:
        """Demand that nobody has changed anything since the states were read.

        Raises:
            StaleError: Someone has.
        """
        for root, state in self.before.items():
            if transaction.read_state(root) != state.document:
                raise StaleError(
                    Problem(
                        message="has changed since the trial was planned",
                        where=str(root.state_dir),
                        hint="run the same command again",
                    )
                )

    def go(self, side: Side) -> None:
        """Go to a side.

        Raises:
            RefusedError: The set would do nothing any more, as after an upgrade.
            SignalError: A signal came.
        """
        if self._is_out and side == "without":
            return
        began = time.monotonic()
        if side == "without":
            self._put(self._out)
        elif self._in is None:
            self._apply()
        elif self._is_out:
            self._put(self._in, strict=True)
        else:
            return
        self._is_out = side == "without"
        self.seconds.append(time.monotonic() - began)

    def put_back(self) -> None:
        """Bring everything to what it was before the trial.

        Raises:
            PendingError: It could not be done.
        """
        try:
            self._put(self.before)
        except PendingError:
            raise
        except (GatepatchError, OSError) as error:
            problems = error.problems if isinstance(error, GatepatchError) else ()
            first = next(iter(self.before))
            told = Problem(
                message=f"what the trial of {self.name} changed could not be put back",
                where=str(first.state_dir / trialmark.NAME),
                hint="mend the cause, then: gatepatch recover",
            )
            raise PendingError((*(problems or (Problem(message=str(error)),)), told)) from error

    def _apply(self) -> None:
        """Put the set in for the first time, and remember how it stands then."""
        result = applier.apply(self.workspace.fresh(), self.name, self.options, self.checked)
        if result.signal is not None:
            raise SignalError(result.signal)
        fresh = self.workspace.fresh()
        self._in = {root: fresh.state(root) for root in self.before}
        self.warnings = result.warnings

    def _put(self, states: Mapping[Root, State], *, strict: bool = False) -> None:
        """Bring the set to what it was in some states.

        Args:
            states: The states.
            strict: Refuse where the set would do nothing, and heed a signal.
        """
        if self.workspace.pending():  # a switch that could not even be undone
            transaction.recover(self.workspace.roots(), timeout=self.options.timeout)
        done, found = put(
            self.workspace.fresh(),
            self.name,
            states,
            jit_roots=self.options.jit_roots,
            timeout=self.options.timeout,
        )
        if strict and (told := [warning for each in found for warning in each.warnings]):
            raise RefusedError([Problem(message=text) for text in told])
        if strict and done is not None and done.signal is not None:
            raise SignalError(done.signal)
