"""Ask the environment's own compiler whether a set does what it says."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gatepatch import usercache
from gatepatch.arch import Arch
from gatepatch.environment import Environment
from gatepatch.errors import TargetError, UsageError
from gatepatch.loader_units import DATA
from gatepatch.spec import PatchSet, UnitSpec
from gatepatch.target import Target
from gatepatch.verifying import compiling, nvcc
from gatepatch.verifying.compile_cache import Cache
from gatepatch.verifying.compiling import Bench, Compiled, Job
from gatepatch.verifying.expectations import SIDE_WORDS, Place, Side, compare
from gatepatch.verifying.finding import Finding
from gatepatch.verifying.source_tree import SourceTree


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """How to compile.

    Args:
        archs: Only these of the set's architectures, and ``like``; all of them if empty.
        timeout: Seconds for one compilation.
        workers: How many compilers run at once; as many as there are processors for None.
        progress: Is told of each compilation as it begins and ends.
    """

    archs: tuple[Arch, ...] = ()
    timeout: float = 900.0
    workers: int | None = None
    progress: Callable[[Compiled | Job], None] = lambda step: None


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A distribution whose units are compiled.

    Args:
        pristine: The set's files by name, to their bytes without the set; None where these are
            not to be had.
        native: Whether the release admits the architectures by itself.
    """

    target: Target
    units: tuple[UnitSpec, ...]
    pristine: Mapping[str, bytes | None]
    native: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledUnit:
    """What a compiler made of a unit for one architecture.

    Args:
        unit: Its path in the distribution.
        arch: The compute capability.
        target: What the compiler was asked for: ``compute_120a``.
        side: ``before`` is without the set, ``after`` as it is on disk.
        kernels: How many there are; None if it could not be compiled.
        empty: How many of them are a bare return.
        instructions: The opcodes that the set counts, to how often they stand there.
        seconds: How long it took; 0 where the result was known.
        cached: Whether it was known.
    """

    unit: str
    arch: Arch
    target: str
    side: Side
    kernels: int | None
    empty: int | None
    instructions: Mapping[str, int]
    seconds: float
    cached: bool


def compile_units(
    environment: Environment, patch_set: PatchSet, subjects: Sequence[Subject], wanted: Wanted
) -> tuple[tuple[CompiledUnit, ...], list[Finding], tuple[str, ...]]:
    """Compile every unit of a set, and compare with what the set expects.

    Returns:
        The results, the findings, and notes on what was not done.

    Raises:
        UsageError: An architecture is wanted that the set does not name.
        SignalError: One came; every compiler has been ended.
    """
    archs = _archs(patch_set, wanted)
    if not subjects:
        return (), [], ("the set names no unit to compile for the releases found",)
    try:
        compiler = nvcc.find()
    except TargetError as error:
        problem = error.problems[0]
        finding = Finding(
            kind="no-nvcc",
            where=problem.where or "--compile",
            expected="a CUDA compiler, as FlashInfer finds it",
            found=problem.message,
            command=problem.hint or "",
        )
        return (), [finding], ()
    cache = Cache(usercache.folder("compile"))
    results: dict[Place, Compiled] = {}
    notes = []
    for subject in subjects:
        done, said = _compile(environment, subject, archs, compiler, cache, wanted)
        results |= done
        notes += said
    if cache.failure:
        notes.append(f"the results could not be kept: {cache.failure}")
    units = tuple(_unit(place, done) for place, done in results.items())
    return units, list(compare(patch_set, results)), tuple(notes)


def _archs(patch_set: PatchSet, wanted: Wanted) -> tuple[Arch, ...]:
    """The set's architectures, then the one that they are to be like."""
    if odd := [arch.name for arch in wanted.archs if arch not in patch_set.archs]:
        named = ", ".join(arch.name for arch in sorted(patch_set.archs))
        raise UsageError(f"{patch_set.name} names {named}, and not {', '.join(odd)}")
    like = [patch_set.like] if patch_set.like else []
    return (*(wanted.archs or sorted(patch_set.archs)), *like)


def _compile(
    environment: Environment,
    subject: Subject,
    archs: Sequence[Arch],
    compiler: nvcc.Compiler,
    cache: Cache,
    wanted: Wanted,
) -> tuple[dict[Place, Compiled], list[str]]:
    data = subject.target.locate(f"{DATA}include").parent
    trees, notes = _trees(subject, data)
    jobs: dict[tuple[str, str, str], Job] = {}
    places: dict[Place, tuple[str, str, str]] = {}
    for unit in subject.units:
        for arch in archs:
            name = nvcc.target_name(arch, subject.target)
            for side, tree in trees.items():
                path = unit.path.removeprefix(DATA)
                key = (path, name, tree.digest)
                title = f"{Path(path).name} for compute_{name}, {SIDE_WORDS[side]}"
                jobs.setdefault(key, Job(unit=path, arch=name, tree=tree, title=title))
                places[Place(unit=unit, arch=arch, side=side)] = key
    bench = Bench(
        compiler=compiler,
        flags=nvcc.flags(compiler),
        folders=nvcc.folders(environment, compiler, data),
        cache=cache,
        timeout=wanted.timeout,
        workers=wanted.workers or len(os.sched_getaffinity(0)),
    )
    done = dict(zip(jobs, compiling.run(bench, list(jobs.values()), wanted.progress), strict=True))
    return {place: done[key] for place, key in places.items()}, notes


def _trees(subject: Subject, data: Path) -> tuple[dict[Side, SourceTree], list[str]]:
    """The sources without the set, and as they are; equal ones are one tree."""
    after = SourceTree(data=data)
    if subject.native:
        return {"after": after}, []
    files = {n.removeprefix(DATA): b for n, b in subject.pristine.items() if n.startswith(DATA)}
    if missing := [name for name, pristine in files.items() if pristine is None]:
        note = f"the pristine bytes of {', '.join(missing)} are not to be had: only what is on disk was compiled"
        return {"after": after}, [note]
    exchanged = {
        name: pristine
        for name, pristine in files.items()
        if pristine is not None and _bytes(data / name) != pristine
    }
    before = SourceTree(data=data, exchanged=exchanged) if exchanged else after
    return {"before": before, "after": after}, []


def _bytes(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def _unit(place: Place, done: Compiled) -> CompiledUnit:
    summary = done.summary
    counted = [e.instruction for e in place.unit.expect if e.instruction]
    return CompiledUnit(
        unit=place.unit.path,
        arch=place.arch,
        target=f"compute_{done.job.arch}",
        side=place.side,
        kernels=summary.kernels if summary else None,
        empty=len(summary.empty) if summary else None,
        instructions={name: summary.count(name) for name in counted} if summary else {},
        seconds=round(done.seconds, 1),
        cached=done.cached,
    )
