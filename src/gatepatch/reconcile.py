"""Reconcile: result = pristine bytes + the edits of all wanted sets, file by file."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence

from gatepatch.classify import Classified, FileKind
from gatepatch.edits import sha256, splice
from gatepatch.errors import Problem, RefusedError
from gatepatch.jitcache import Module
from gatepatch.merge import merged
from gatepatch.records import dataclass, replace
from gatepatch.state import AppliedSet, FileRecord, Merge, State
from gatepatch.target import Root
from gatepatch.transaction import Rename, RootChange, Transaction, Write


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a root should carry.

    Args:
        sets: All wanted sets by name, those that stay included.
        merges: Edits of sets in conflict, worked out together.
        accept: Files whose present bytes the user takes as the base.
        discard: Whether the user wants foreign bytes replaced by pristine ones.
    """

    sets: Mapping[str, AppliedSet]
    merges: tuple[Merge, ...] = ()
    accept: frozenset[str] = frozenset()
    discard: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciled:
    """How a root gets there.

    Args:
        change: What is to be written; None if the root is as wanted.
        before: Path to the bytes that stand there now, of the files that are written.
        kinds: Path to what each file was found to be.
        warnings: What a person should know.
    """

    change: RootChange | None
    before: Mapping[str, bytes]
    kinds: Mapping[str, FileKind]
    warnings: tuple[str, ...] = ()


def reconcile(
    root: Root,
    state: State,
    wanted: Wanted,
    look: Callable[[str], Classified],
    refuse: Callable[[str, Classified], RefusedError],
) -> Reconciled:
    """Work out how a root gets from its state to the wanted sets.

    Args:
        root: The root.
        state: What it carries.
        wanted: What it should carry.
        look: Classifies a file by its path in the root.
        refuse: Makes the refusal of a foreign file.

    Raises:
        RefusedError: A foreign file is in the way, or two sets contradict each other.
    """
    writes: list[Write] = []
    blobs: dict[str, bytes] = {}
    foreign: list[bytes] = []
    records: dict[str, FileRecord] = {}
    kinds: dict[str, FileKind] = {}
    before: dict[str, bytes] = {}
    warnings: list[str] = []
    paths = {path for value in wanted.sets.values() for path in value.files} | set(state.files)
    for path in sorted(paths):
        found = look(path)
        kinds[path] = found.kind
        files = {n: s.files[path] for n, s in wanted.sets.items() if path in s.files}
        if found.kind == "missing" and not files:
            continue
        if found.kind == "foreign" and path not in wanted.accept and not wanted.discard:
            raise refuse(path, found)
        base = _base(root, path, found, wanted)
        if base is None:
            if files and found.kind == "missing":
                warnings.append(f"{path}: missing; its package is gone or damaged")
                continue
            raise refuse(path, found)
        digest = sha256(base)
        outdated = [name for name, file in files.items() if file.pristine != digest]
        for name in outdated:
            del files[name]
            warnings.append(
                f"{path}: upgraded since {name} was applied, so {name} does nothing there now; "
                f"apply it again: gatepatch apply {name}"
            )
        result = splice(base, merged(path, files, wanted.merges))
        record = state.files.get(path)
        link = record.link if record else found.image.link if found.image else None
        if files:
            blobs[digest] = base
            records[path] = FileRecord(
                pristine=digest,
                result=sha256(result),
                link=link,
                accepted=path in wanted.accept or bool(record and record.accepted),
            )
        assert found.image is not None
        restore = link if not files and found.kind == "applied" else None
        if found.image.sha256 != sha256(result) or restore is not None:
            current = (root.path / path).read_bytes()
            before[path] = current
            if found.kind == "foreign" and path not in wanted.accept:
                foreign.append(current)
            writes.append(Write(path=path, before=found.image, after=result, link=restore))
    after = State(
        sets={n: s for n, s in wanted.sets.items() if s.files or s.hidden},
        files=records,
        merges=_still_used(wanted),
    )
    renames = _renames(root, state, wanted, warnings)
    document = after.to_bytes()
    changed = bool(writes or renames or document != state.to_bytes())
    return Reconciled(
        change=RootChange(
            root=root,
            writes=tuple(writes),
            renames=renames,
            blobs=tuple(blobs.values()),
            foreign=tuple(foreign),
            state=document,
            state_before=state.document,
        )
        if changed
        else None,
        before=before,
        kinds=kinds,
        warnings=tuple(warnings),
    )


def transaction(found: Iterable[Reconciled], modules: Sequence[Module]) -> Transaction:
    """The changes of all roots together, each file newer than what was built from it.

    Args:
        found: Of every root, those that are as wanted included.
        modules: The JIT modules that derive from the files.
    """
    newest = max((module.newest_output for module in modules), default=0)
    return Transaction(
        changes=tuple(
            replace(
                each.change,
                writes=tuple(replace(write, newer_than=newest) for write in each.change.writes),
            )
            for each in found
            if each.change is not None
        ),
        jit=tuple(modules),
    )


def _base(root: Root, path: str, found: Classified, wanted: Wanted) -> bytes | None:
    if found.kind == "foreign" and path in wanted.accept:
        return (root.path / path).read_bytes()
    return found.pristine


def _still_used(wanted: Wanted) -> tuple[Merge, ...]:
    return tuple(merge for merge in wanted.merges if set(merge.sets) <= set(wanted.sets))


def _renames(root: Root, state: State, wanted: Wanted, warnings: list[str]) -> tuple[Rename, ...]:
    """Hide the prebuilt modules of sets that come, put back those that no set hides any more.

    Their package may have been installed again or removed meanwhile, so the disk decides.

    Raises:
        RefusedError: A module is there both hidden and again.
    """
    was = {pair for value in state.sets.values() for pair in value.hidden}
    will = {pair for value in wanted.sets.values() for pair in value.hidden}
    renames = []
    for hidden, shown in sorted(will):
        if (root.path / shown).exists():
            if (root.path / hidden).exists():
                raise RefusedError(_again(root, hidden, shown))
            renames.append(Rename(source=shown, destination=hidden))
    for hidden, shown in sorted(was - will):
        if not (root.path / hidden).exists():
            warnings.append(f"{shown}: was moved aside, and is not there any more")
        elif (root.path / shown).exists():
            warnings.append(str(_again(root, hidden, shown)))
        else:
            renames.append(Rename(source=hidden, destination=shown))
    return tuple(renames)


def _again(root: Root, hidden: str, shown: str) -> Problem:
    old = root.path / hidden
    return Problem(
        message=f"was installed again since it was moved aside; the old one is {old}",
        where=str(root.path / shown),
        hint=f"remove the old one: rm {shlex.quote(str(old))}",
    )
