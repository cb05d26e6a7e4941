"""What was left unfinished, and operations that begin by settling it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from gatepatch import jitcache, transaction, trialmark
from gatepatch.change import Committed, Recovered
from gatepatch.errors import PendingError, Problem, RefusedError, StaleError
from gatepatch.looking import look_at, refuse_foreign
from gatepatch.reconcile import Reconciled, Wanted, reconcile
from gatepatch.reconcile import transaction as together
from gatepatch.state import State
from gatepatch.target import Root
from gatepatch.trialmark import Mark
from gatepatch.workspace import Workspace

TRIES = 20
"""How often an operation is planned anew because another process changed something meanwhile."""

T = TypeVar("T")


def settled(workspace: Workspace, operation: Callable[[Workspace], T], timeout: float) -> T:
    """Run an operation on a settled environment, anew while other processes change it.

    A plan that is made while another process replaces files sees some of them as foreign.

    Args:
        workspace: The environment; each try sees it anew.
        operation: Plans, and commits what it has planned.
        timeout: Seconds to wait for each lock.

    Raises:
        LockTimeoutError: Another process runs a trial here.
    """
    for root in workspace.roots():
        mark = trialmark.running(root)
        if mark is not None and mark.id != workspace.trial:
            raise trialmark.refusal(root, mark)
    # Whoever has looked before has read states that may have changed before the stamp is taken.
    workspace = workspace.fresh()
    for last in (*[False] * (TRIES - 1), True):
        if workspace.pending():
            recover(workspace, timeout)
            workspace = workspace.fresh()
        seen = workspace.stamp()
        try:
            return operation(workspace)
        except (StaleError, RefusedError) as error:
            workspace = workspace.fresh()
            moved = isinstance(error, StaleError) or workspace.stamp() != seen
            if last or not (moved or workspace.pending()):
                raise
    raise AssertionError("unreachable")


def recover(workspace: Workspace, timeout: float) -> tuple[Recovered, ...]:
    """Settle what was interrupted: changes first, then trials that were killed.

    Raises:
        PendingError: It cannot be settled; the backups are kept.
    """
    done = transaction.recover(workspace.roots(), timeout=timeout)
    marks: dict[str, Mark] = {}
    for root in workspace.roots():
        if mark := trialmark.killed(root):
            marks.setdefault(mark.id, mark)
    for mark in marks.values():
        done += _end_trial(workspace.fresh(), mark, timeout)
    return done


def put(
    workspace: Workspace,
    name: str,
    states: Mapping[Root, State],
    *,
    jit_roots: Sequence[Path] = (),
    timeout: float = 60.0,
) -> tuple[Committed | None, tuple[Reconciled, ...]]:
    """Bring one set to what it was in other states of some roots; every other set stays.

    It goes by the recorded edits, so it needs no YAML and no parser.

    Args:
        workspace: The environment as it is.
        name: The set's name.
        states: Each root, and a state of it that has the set as it should be, or has it not.
        jit_roots: More JIT cache roots.
        timeout: Seconds to wait for each lock.

    Returns:
        What was committed, if anything had to be, and how each root got there.
    """
    found = tuple(_to(workspace, root, name, state) for root, state in states.items())
    changed = [each for each in found if each.change is not None]
    if not changed:
        return None, found
    both = [s for root, state in states.items() for s in (workspace.state(root), state)]
    names = jitcache.union(state.sets[name].jit for state in both if name in state.sets)
    modules = jitcache.known_modules(names, jit_roots) if names else ()
    return transaction.commit(together(changed, modules), timeout=timeout), found


def _to(workspace: Workspace, root: Root, name: str, source: State) -> Reconciled:
    state = workspace.state(root)
    sets = {n: value for n, value in state.sets.items() if n != name}
    if name in source.sets:
        sets[name] = source.sets[name]
    merges = (
        *(merge for merge in state.merges if name not in merge.sets),
        *(merge for merge in source.merges if name in merge.sets),
    )
    accept = frozenset(path for path, record in source.files.items() if record.accepted)
    return reconcile(
        root,
        state,
        Wanted(sets=sets, merges=merges, accept=accept if name in source.sets else frozenset()),
        look=lambda path: look_at(workspace, root, path),
        refuse=lambda path, what: refuse_foreign(workspace, root, state, path, what, name),
    )


def _end_trial(workspace: Workspace, mark: Mark, timeout: float) -> tuple[Recovered, ...]:
    """Put back what a killed trial has changed, in all roots that still have its mark."""
    marks = [each for root in mark.roots if (each := trialmark.read_mark(root.state_dir))]
    marks = [mark if len(mark.roots) == 1 else m for m in marks if m.id == mark.id]
    roots = [m.root for m in marks]
    transaction.recover(roots, timeout=timeout)
    found = _put_back(workspace, mark, {m.root: _state_of(m) for m in marks}, timeout)
    trialmark.drop([root.state_dir for root in roots], mark.id, timeout)
    return tuple(
        Recovered(root=root.path, outcome="rolled-back", files=tuple(sorted(each.before)))
        for root, each in zip(roots, found, strict=True)
    )


def _put_back(
    workspace: Workspace, mark: Mark, states: Mapping[Root, State], timeout: float
) -> tuple[Reconciled, ...]:
    """Put the trial's set back to what it was.

    Raises:
        PendingError: Someone has edited a file meanwhile.
    """
    jit_roots = [path for path in map(Path, mark.jit_roots) if path.is_dir()]
    for last in (*[False] * (TRIES - 1), True):
        try:
            return put(workspace, mark.name, states, jit_roots=jit_roots, timeout=timeout)[1]
        except StaleError:  # another process settles it too
            if last:
                raise
            workspace = workspace.fresh()
        except RefusedError as error:
            path = mark.roots[0].state_dir / trialmark.NAME
            told = Problem(
                message=f"a trial of {mark.name} was killed, and what it changed cannot be put back",
                where=str(path),
                hint="put the file back and run: gatepatch recover. Or remove this mark, and all "
                "stays as it is now",
            )
            raise PendingError((*error.problems, told)) from None
    raise AssertionError("unreachable")


def _state_of(mark: Mark) -> State:
    data = None if mark.state is None else mark.state.encode()
    return State.from_bytes(data, str(mark.root.state_dir / trialmark.NAME))
