"""Put the originals back."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path

from gatepatch import catalog, jitcache
from gatepatch.classify import Classified, FileKind
from gatepatch.edits import sha256
from gatepatch.errors import GatepatchError, Problem, UnknownSetError, did_you_mean
from gatepatch.looking import look_at, refuse_foreign
from gatepatch.planned import Inspected
from gatepatch.planner import inspect_set
from gatepatch.reconcile import Reconciled, Wanted, reconcile, transaction
from gatepatch.records import dataclass, replace
from gatepatch.results import FileResult, Outcome, Result, SetResult, together
from gatepatch.spec import Goal
from gatepatch.state import AppliedSet, FileRecord, SetFile, State
from gatepatch.target import Root
from gatepatch.transaction import Committed, commit
from gatepatch.unfinished import settled
from gatepatch.workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to revert.

    Args:
        patches: Folders of the user's own sets; read only where state has been lost.
        discard_foreign: Replace foreign bytes by pristine ones; the foreign ones are kept.
        wheels: Wheels to take pristine bytes from.
        jit_roots: More JIT cache roots.
        timeout: Seconds to wait for each lock.
    """

    patches: tuple[Path, ...] = ()
    discard_foreign: bool = False
    wheels: tuple[Path, ...] = ()
    jit_roots: tuple[Path, ...] = ()
    timeout: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lost:
    """What a set did to a root whose state does not know it any more."""

    root: Root
    state: State
    looks: dict[str, Classified]


def revert(workspace: Workspace, name: str | None, options: Options) -> Result:
    """Revert one set, or all; see ``gatepatch.revert``."""
    return settled(workspace, lambda fresh: _revert(fresh, name, options), options.timeout)


def _revert(workspace: Workspace, name: str | None, options: Options) -> Result:
    lost = _lost(workspace, name, options)
    roots = {root.path: root for root in (*workspace.roots(), *(item.root for item in lost))}
    found: list[tuple[Root, State, Reconciled]] = []
    for root in roots.values():
        state, looks = workspace.state(root), {}
        for item in lost:
            if item.root == root:
                state, looks = item.state, item.looks
        names = set(state.sets) if name is None else {name} & set(state.sets)
        if names:
            found.append((root, state, _reconcile(workspace, root, state, looks, names, options)))
    if name is not None and not found:
        known = catalog.files(options.patches)
        if name not in known:
            raise UnknownSetError(
                Problem(
                    message=f"no patch set named {name!r} is applied, and none is known",
                    hint=did_you_mean(name, known),
                )
            )
    done = _commit(found, name, options)
    sets = _set_results(found, name)
    outcome: Outcome = together([s.outcome for s in sets]) if sets else "pristine"
    if any(reconciled.change is not None for _, _, reconciled in found):
        outcome = "reverted"
    return Result(
        command="revert",
        outcome=outcome,
        sets=sets,
        warnings=tuple(w for _, _, reconciled in found for w in reconciled.warnings),
        jit_removed=tuple(map(str, done.jit_removed)) if done else (),
        signal=done.signal if done else None,
    )


def _reconcile(
    workspace: Workspace,
    root: Root,
    state: State,
    looks: dict[str, Classified],
    names: set[str],
    options: Options,
) -> Reconciled:
    wanted = Wanted(
        sets={n: value for n, value in state.sets.items() if n not in names},
        merges=state.merges,
        discard=options.discard_foreign,
    )

    def look(path: str) -> Classified:
        found = looks[path] if path in looks else look_at(workspace, root, path)
        if found.kind == "foreign" and found.pristine is None and options.wheels:
            owners = [v.files[path].name for v in state.sets.values() if path in v.files]
            return replace(found, pristine=_from_wheels(options.wheels, owners[0]))
        return found

    return reconcile(
        root,
        state,
        wanted,
        look=look,
        refuse=lambda path, what: refuse_foreign(workspace, root, state, path, what, min(names)),
    )


def _from_wheels(wheels: Sequence[Path], name: str) -> bytes | None:
    for wheel in wheels:
        try:
            with zipfile.ZipFile(wheel) as archive:
                if name in archive.namelist():
                    return archive.read(name)
        except (OSError, zipfile.BadZipFile) as error:
            raise GatepatchError(
                Problem(message=f"cannot be read as a wheel: {error}", where=str(wheel))
            ) from None
    return None


def _commit(
    found: Sequence[tuple[Root, State, Reconciled]], name: str | None, options: Options
) -> Committed | None:
    if all(reconciled.change is None for _, _, reconciled in found):
        return None
    names = jitcache.union(
        value.jit
        for _, state, _ in found
        for value in state.sets.values()
        if name in (None, value.name)
    )
    modules = jitcache.known_modules(names, options.jit_roots) if names else ()
    return commit(
        transaction((reconciled for _, _, reconciled in found), modules), timeout=options.timeout
    )


_WORDS: dict[FileKind, Outcome] = {
    "applied": "reverted",
    "pristine": "pristine",
    "upgraded": "upgraded",
    "missing": "missing",
    "foreign": "reverted",
}


def _set_results(
    found: Sequence[tuple[Root, State, Reconciled]], name: str | None
) -> tuple[SetResult, ...]:
    files: dict[str, list[FileResult]] = {}
    for root, state, reconciled in found:
        for value in state.sets.values():
            if name in (None, value.name):
                files.setdefault(value.name, []).extend(
                    FileResult(
                        distribution=file.distribution,
                        version=file.version,
                        root=str(root.path),
                        path=path,
                        outcome=_WORDS[reconciled.kinds[path]],
                        pinned=file.pinned,
                    )
                    for path, file in value.files.items()
                )
    return tuple(
        SetResult(
            name=n,
            outcome=together([f.outcome for f in group]) if group else "reverted",
            files=tuple(group),
        )
        for n, group in sorted(files.items())
    )


def _lost(workspace: Workspace, name: str | None, options: Options) -> list[_Lost]:
    """Work out from the files themselves what state does not know any more."""
    known = catalog.files(options.patches)
    applied = {n for root in workspace.roots() for n in workspace.state(root).sets}
    names = [n for n in ([name] if name else known) if n in known and n not in applied]
    # A whole state is never second-guessed: reading the sets takes YAML, and a revert needs none.
    if name is None and applied:
        return []
    inspected: dict[str, tuple[Inspected, ...]] = {}
    for n in names:
        found = inspect_set(workspace, catalog.load(n, options.patches))
        kinds = {item.classified.kind for item in found if item.classified.rebuilt}
        if "applied" in kinds or (options.discard_foreign and found):
            inspected[n] = found
    roots = {i.target.root.path: i.target.root for items in inspected.values() for i in items}
    return [_rebuilt(workspace, root, inspected, options) for root in roots.values()]


def _rebuilt(
    workspace: Workspace,
    root: Root,
    inspected: dict[str, tuple[Inspected, ...]],
    options: Options,
) -> _Lost:
    state = workspace.state(root)
    sets, files = dict(state.sets), dict(state.files)
    looks: dict[str, Classified] = {}
    for name, items in inspected.items():
        chosen = {
            item.path: item
            for item in items
            if item.target.root == root
            and (
                item.classified.rebuilt
                or (item.classified.kind == "foreign" and options.discard_foreign)
            )
        }
        if not chosen:
            continue
        for path, item in chosen.items():
            looks[path] = item.classified
            assert item.classified.image is not None
            pristine = item.classified.pristine
            files[path] = FileRecord(
                pristine=sha256(pristine) if pristine is not None else "",
                result=item.classified.image.sha256,
            )
        sets[name] = _set_of(name, chosen)
    return _Lost(root=root, state=replace(state, sets=sets, files=files), looks=looks)


def _set_of(name: str, chosen: dict[str, Inspected]) -> AppliedSet:
    jit: dict[str, tuple[str, ...]] = {}
    for item in chosen.values():
        jit.update(item.spec.jit)
    return AppliedSet(
        name=name,
        digest="",
        applied="",
        tool="",
        goal=Goal(action="open", archs=frozenset()),
        distributions={i.target.distribution: i.target.version for i in chosen.values()},
        jit=jit,
        files={
            path: SetFile(
                distribution=item.target.distribution,
                version=item.target.version,
                name=item.name,
                pristine="",
                edits=(),
            )
            for path, item in chosen.items()
        },
    )
