"""Say again, from the bytes on disk, whether a set is applied and has its effect.

Nothing is written, no lock is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gatepatch import catalog, jitcache
from gatepatch.arch import Arch
from gatepatch.results import Outcome, WitnessKind, together
from gatepatch.spec import PatchSet
from gatepatch.verifying.finding import Finding
from gatepatch.verifying.findings import about, missing, notes, strays
from gatepatch.verifying.judging import JudgedPlace
from gatepatch.verifying.looked import Looked, look_at_set
from gatepatch.verifying.obstacles import obstacles
from gatepatch.verifying.units import CompiledUnit, Subject, Wanted, compile_units
from gatepatch.workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedFile:
    """One file of a set, as it stands.

    Args:
        root: The folder that ``path`` is relative to.
        path: With ``/``.
        outcome: ``applied``, ``native``, ``pristine`` and so on.
        witness: What vouches for the pristine bytes.
        sha256: Of the bytes on disk; empty if there are none.
        expected: Of what the set makes of the pristine bytes, worked out now; empty where it
            cannot be, or where several sets share the file.
        places: Every place of the set, with its verdict on disk.
    """

    distribution: str
    version: str
    root: str
    path: str
    outcome: Outcome
    witness: WitnessKind
    sha256: str
    expected: str
    places: tuple[JudgedPlace, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What was found.

    Args:
        set: The set's name.
        archs: The architectures that it names.
        outcome: One word for its files.
        findings: What is wrong; empty if everything holds.
        notes: What could not be looked at, and what a person should know.
        compiled: What a compiler made of the set's units, if it was asked.
        pending: One line on an interrupted change, if one is pending.
    """

    set: str
    archs: tuple[Arch, ...]
    like: Arch | None
    outcome: Outcome
    files: tuple[VerifiedFile, ...]
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()
    compiled: tuple[CompiledUnit, ...] = ()
    pending: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What to look at.

    Args:
        patches: Folders of the user's own sets.
        jit_roots: More JIT cache roots.
        compile: How to compile the set's units; None for not at all.
    """

    patches: tuple[Path, ...] = ()
    jit_roots: tuple[Path, ...] = ()
    compile: Wanted | None = None


def verify(workspace: Workspace, name: str, options: Options) -> Verified:
    """Verify a set; see ``gatepatch.verify``."""
    patch_set = catalog.load(name, options.patches)
    if pending := workspace.pending():
        return _verified(patch_set, (), (), pending=pending)
    looked = look_at_set(workspace, patch_set)
    findings = [*missing(workspace, patch_set, looked), *strays(workspace, patch_set, looked)]
    findings += [finding for one in looked for finding in about(one, name)]
    in_the_way, said = obstacles(
        workspace,
        name,
        [(one.item.target, one.item.name) for one in looked],
        jitcache.union(one.item.spec.jit for one in looked if one.outcome != "native"),
        options.jit_roots,
    )
    findings += in_the_way
    said = (*notes(looked), *said)
    compiled: tuple[CompiledUnit, ...] = ()
    if options.compile is not None:
        compiled, wrong, more = compile_units(
            workspace.environment, patch_set, _subjects(looked), options.compile
        )
        findings += wrong
        said += more
    return _verified(patch_set, looked, findings, notes=said, compiled=compiled)


def _verified(
    patch_set: PatchSet,
    looked: Sequence[Looked],
    findings: Sequence[Finding],
    *,
    notes: tuple[str, ...] = (),
    compiled: tuple[CompiledUnit, ...] = (),
    pending: str | None = None,
) -> Verified:
    outcome = together([one.outcome for one in looked]) if looked else "missing"
    return Verified(
        set=patch_set.name,
        archs=tuple(sorted(patch_set.archs)),
        like=patch_set.like,
        outcome="interrupted" if pending else outcome,
        files=tuple(map(_file, looked)),
        findings=tuple(dict.fromkeys(findings)),
        notes=tuple(dict.fromkeys(notes)),
        compiled=compiled,
        pending=pending,
    )


def _file(one: Looked) -> VerifiedFile:
    target = one.item.target
    return VerifiedFile(
        distribution=target.distribution,
        version=target.version,
        root=str(target.root.path),
        path=one.item.path,
        outcome=one.outcome,
        witness=one.item.classified.witness,
        sha256=one.sha256,
        expected=one.judged.expected,
        places=one.judged.places,
    )


def _subjects(looked: Sequence[Looked]) -> tuple[Subject, ...]:
    """What a compiler may be asked about: the blocks that have units, and their files."""
    blocks: dict[str, list[Looked]] = {}
    for one in looked:
        if one.item.spec.units:
            blocks.setdefault(one.item.target.distribution, []).append(one)
    return tuple(
        Subject(
            target=files[0].item.target,
            units=files[0].item.spec.units,
            pristine={
                one.item.name: one.pristine if one.outcome != "native" else one.current
                for one in files
            },
            native=all(one.outcome == "native" for one in files),
        )
        for files in blocks.values()
    )
