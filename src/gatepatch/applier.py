"""Apply a set, or say what applying it would do."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path

from gatepatch import __version__, catalog, devices, jitcache
from gatepatch.arch import Arch
from gatepatch.edits import sha256, unified_diff
from gatepatch.gates.engines import run_engine
from gatepatch.looking import look_at, refuse_foreign
from gatepatch.merge import new_merges
from gatepatch.planned import PlannedFile, PlannedTarget, SetPlan
from gatepatch.planner import plan_set
from gatepatch.prebuilt import prebuilt
from gatepatch.probing.requirements import wanted
from gatepatch.reasons import refuse_unfilled
from gatepatch.reconcile import Reconciled, Wanted, reconcile, transaction
from gatepatch.records import dataclass, replace
from gatepatch.results import FileResult, Outcome, Result, SetResult
from gatepatch.spec import Requirements
from gatepatch.state import AppliedSet, Merge, SetFile
from gatepatch.target import Root
from gatepatch.transaction import Committed, commit
from gatepatch.unfinished import settled
from gatepatch.workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to apply.

    Args:
        patches: Folders of the user's own sets.
        assume: Architectures that stand in for the probe.
        all_devices: Whether every visible device must be admitted, not just one.
        accept_current: Take the present bytes of foreign files as the base.
        require_pin: Refuse files that no pin knows.
        hide_aot: Move prebuilt modules aside that would be loaded instead.
        jit_roots: More JIT cache roots.
        timeout: Seconds to wait for each lock.
    """

    patches: tuple[Path, ...] = ()
    assume: tuple[Arch, ...] = ()
    all_devices: bool = False
    accept_current: bool = False
    require_pin: bool = False
    hide_aot: bool = False
    jit_roots: tuple[Path, ...] = ()
    timeout: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """One root's way to the wanted sets."""

    root: Root
    reconciled: Reconciled


def apply(
    workspace: Workspace, name: str, options: Options, checked: devices.Checked | None = None
) -> Result:
    """Apply a set; see ``gatepatch.apply``.

    Args:
        workspace: The environment.
        name: The set's name.
        options: How to apply it.
        checked: What the devices have answered already; they are not asked again.
    """

    @functools.cache
    def check(archs: frozenset[Arch], requires: Requirements) -> devices.Checked:
        return checked or devices.check(
            name, archs, options.assume, all_devices=options.all_devices, requires=requires
        )

    return settled(workspace, lambda fresh: _apply(fresh, name, options, check), options.timeout)


def _apply(
    workspace: Workspace,
    name: str,
    options: Options,
    check: Callable[[frozenset[Arch], Requirements], devices.Checked],
) -> Result:
    plan = _plan(workspace, name, options)
    steps, warnings = _steps(workspace, plan, options)
    changed = [step for step in steps if step.reconciled.change is not None]
    writing = any(step.reconciled.before for step in changed)
    if not changed or not (writing or _renames(changed)):
        outcome: Outcome = "native" if _native(plan) else "already-applied"
        if changed:  # only the state is written: it had been lost
            commit(transaction(_reconciled(changed), ()), timeout=options.timeout)
        if not _native(plan):
            warnings += devices.warn(plan.patch_set.archs, options.assume)
        return _result(
            outcome,
            _set_result(plan, steps, outcome),
            warnings=warnings,
            assumed=options.assume,
        )
    checked = check(plan.patch_set.archs, plan.patch_set.requires)
    done = commit(
        transaction(_reconciled(changed), _modules(plan, options)), timeout=options.timeout
    )
    return _result(
        "applied",
        _set_result(plan, steps, "applied"),
        devices=checked.devices,
        warnings=(
            *checked.warnings,
            *warnings,
            *devices.warn_imported(
                {f.name: f.target.root.path / f.path for f in plan.files if f.edits}
            ),
        ),
        assumed=options.assume,
        done=done,
    )


def plan(workspace: Workspace, name: str, options: Options) -> Result:
    """Say what ``apply`` would do; see ``gatepatch.plan``."""
    return rehearse(workspace, name, options).result


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsed:
    """What ``apply`` would do.

    Args:
        result: As ``gatepatch.plan`` has it.
        roots: Every root that is touched.
        archs: The architectures that the set names.
        requires: What their devices must be able to do.
        compiles: Whether FlashInfer compiles anything of what is edited.
    """

    result: Result
    roots: tuple[Root, ...]
    archs: frozenset[Arch]
    requires: Requirements
    compiles: bool


def rehearse(workspace: Workspace, name: str, options: Options) -> Rehearsed:
    """Say what ``apply`` would do, and where; nothing is written."""
    made = _plan(workspace, name, options)
    steps, warnings = _steps(workspace, made, options)
    if running := workspace.running():
        warnings = (running, *warnings)
    outcome: Outcome = "already-applied"
    if any(step.reconciled.before for step in steps):
        outcome = "would-apply"
    elif _native(made):
        outcome = "native"
    result = _result(
        outcome,
        _set_result(made, steps, outcome, diff=True),
        warnings=warnings,
        assumed=options.assume,
    )
    return Rehearsed(
        result=replace(result, command="plan", pending=workspace.pending()),
        roots=tuple(step.root for step in steps),
        archs=made.patch_set.archs,
        requires=made.patch_set.requires,
        compiles=bool(_jit(made.targets).get("flashinfer")),
    )


def _plan(workspace: Workspace, name: str, options: Options) -> SetPlan:
    patch_set = catalog.load(name, options.patches)
    refuse_unfilled(patch_set)
    return plan_set(
        workspace,
        patch_set,
        accept_current=options.accept_current,
        require_pin=options.require_pin,
    )


def _native(made: SetPlan) -> bool:
    return all(target.native or target.target is None for target in made.targets)


def _steps(
    workspace: Workspace, made: SetPlan, options: Options
) -> tuple[list[_Step], tuple[str, ...]]:
    """How every root that the set touches, or touched, gets to where it should be."""
    name = made.patch_set.name
    roots = {f.target.root.path: f.target.root for f in made.files}
    for root in workspace.roots():
        if name in workspace.state(root).sets:
            roots.setdefault(root.path, root)
    hidden: dict[Path, tuple[tuple[str, str], ...]] = {}
    for binary in prebuilt(workspace, made, _jit(made.targets), hide=options.hide_aot):
        path = binary.root.path
        roots.setdefault(path, binary.root)  # it may lie where the set edits nothing
        hidden[path] = (*hidden.get(path, ()), (binary.hidden, binary.path))
    steps = []
    warnings = [w for t in made.targets if t.target for w in t.target.warnings]
    for root in roots.values():
        wanted = _wanted(workspace, made, root, hidden.get(root.path, ()))
        known = {f.path: f.classified for f in made.files if f.target.root == root}
        found = reconcile(
            root,
            workspace.state(root),
            wanted,
            look=lambda path, root=root, known=known: (  # type: ignore[misc]
                known[path] if path in known else look_at(workspace, root, path)
            ),
            refuse=lambda path, what, root=root: refuse_foreign(  # type: ignore[misc]
                workspace, root, workspace.state(root), path, what, name
            ),
        )
        warnings += found.warnings
        steps.append(_Step(root=root, reconciled=found))
    return steps, tuple(warnings)


def _wanted(
    workspace: Workspace, made: SetPlan, root: Root, hidden: tuple[tuple[str, str], ...]
) -> Wanted:
    state = workspace.state(root)
    name = made.patch_set.name
    value = _applied_set(made, root, hidden, state.sets.get(name))
    sets = {**state.sets, name: value}
    if not value.files and not value.hidden:
        del sets[name]
    merges = [merge for merge in state.merges if name not in merge.sets]
    for file in made.files:
        if file.target.root == root and file.path in value.files:
            merges += _merges(file, sets)
    accept = frozenset(
        f.path for f in made.files if f.target.root == root and f.classified.kind == "foreign"
    )
    return Wanted(sets=sets, merges=tuple(merges), accept=accept)


def _merges(file: PlannedFile, sets: Mapping[str, AppliedSet]) -> tuple[Merge, ...]:
    digest = sha256(file.pristine)
    files = {
        n: s.files[file.path]
        for n, s in sets.items()
        if file.path in s.files and s.files[file.path].pristine == digest
    }
    own = next(n for n, f in files.items() if f.edits == file.edits and f.spec == file.spec)
    return new_merges(
        file.path,
        files,
        {n: s.goal for n, s in sets.items()},
        own,
        lambda edits, goal: run_engine(file.pristine, edits, replace(file.context, goal=goal)),
    )


def _applied_set(
    made: SetPlan, root: Root, hidden: tuple[tuple[str, str], ...], old: AppliedSet | None
) -> AppliedSet:
    patch_set = made.patch_set
    files = {
        f.path: SetFile(
            distribution=f.target.distribution,
            version=f.target.version,
            name=f.name,
            pristine=sha256(f.pristine),
            edits=f.edits,
            spec=f.spec,
            pinned=f.pinned,
            unproved=tuple(p.unproved for p in f.places if p.unproved),
        )
        for f in made.files
        if f.target.root == root and (f.edits or f.classified.kind == "foreign")
    }
    value = AppliedSet(
        name=patch_set.name,
        digest=patch_set.digest,
        applied=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        tool=__version__,
        goal=patch_set.goal,
        distributions={
            t.distribution: t.target.version for t in made.targets if t.target is not None
        },
        jit=_jit(made.targets),
        hidden=tuple(dict.fromkeys((*(old.hidden if old else ()), *hidden))),
        files=files,
    )
    if old is not None and replace(value, applied=old.applied, tool=old.tool) == old:
        return old
    return value


def _jit(targets: Sequence[PlannedTarget]) -> dict[str, tuple[str, ...]]:
    """The modules that derive from what is edited."""
    return jitcache.union(t.spec.jit for t in targets if t.spec is not None and not t.native)


def _modules(made: SetPlan, options: Options) -> tuple[jitcache.Module, ...]:
    names = _jit(made.targets)
    return jitcache.known_modules(names, options.jit_roots) if names else ()


def _reconciled(steps: Sequence[_Step]) -> list[Reconciled]:
    return [step.reconciled for step in steps]


def _renames(steps: Sequence[_Step]) -> bool:
    return any(step.reconciled.change and step.reconciled.change.renames for step in steps)


def _set_result(
    made: SetPlan,
    steps: Sequence[_Step],
    outcome: Outcome,
    *,
    diff: bool = False,
) -> SetResult:
    before = {
        (step.root.path, path): data
        for step in steps
        for path, data in step.reconciled.before.items()
    }
    after = {
        (step.root.path, write.path): write.after
        for step in steps
        if step.reconciled.change
        for write in step.reconciled.change.writes
    }
    files = []
    for file in made.files:
        key = (file.target.root.path, file.path)
        word: Outcome = "already-applied" if file.edits else "native"
        if key in before:
            word = "would-apply" if outcome == "would-apply" else "applied"
        files.append(
            FileResult(
                distribution=file.target.distribution,
                version=file.target.version,
                root=str(file.target.root.path),
                path=file.path,
                outcome=word,
                pinned=file.pinned,
                witness=file.classified.witness,
                places=file.places,
                diff=unified_diff(file.path, before[key], after[key])
                if diff and key in before
                else "",
            )
        )
    versions = {t.distribution: t.target.version for t in made.targets if t.target is not None}
    notes = [t.spec.note for t in made.targets if t.spec is not None and t.spec.note]
    if outcome == "would-apply":
        required = wanted(made.patch_set.requires).values()
        notes += [f"apply will ask each device for {what}" for what in required]
    return SetResult(
        name=made.patch_set.name,
        outcome=outcome,
        summary=made.patch_set.summary,
        files=tuple(files),
        advisories=tuple(a for a in made.patch_set.advisories if a.applies(versions)),
        notes=tuple(notes),
    )


def _result(
    outcome: Outcome,
    patch_set: SetResult,
    *,
    devices: tuple[devices.Device, ...] = (),
    warnings: Sequence[str] = (),
    assumed: Sequence[Arch] = (),
    done: Committed | None = None,
) -> Result:
    return Result(
        command="apply",
        outcome=outcome,
        sets=(patch_set,),
        devices=devices,
        assumed=tuple(str(arch) for arch in assumed),
        warnings=tuple(dict.fromkeys(warnings)),
        jit_removed=tuple(map(str, done.jit_removed)) if done else (),
        signal=done.signal if done else None,
    )
