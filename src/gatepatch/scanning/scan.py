"""Scan an environment's distributions for gates."""

from __future__ import annotations

import fnmatch
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypedDict

from gatepatch.arch import TABLE, Arch
from gatepatch.environment import Environment
from gatepatch.errors import Problem, TargetError, UsageError
from gatepatch.metadata import canonical_name, metadata_in
from gatepatch.scanning import borrowed, cache, pool
from gatepatch.scanning.found import leaves_out
from gatepatch.scanning.one_file import read_back
from gatepatch.scanning.records import KINDS, Finding, Folded, Scanned, ScanResult, Tree
from gatepatch.scanning.walk import PYTHON, SourceFile, files_of, folder_of
from gatepatch.target import Target, find_target

WRITTEN_FOR = (Arch(9, 0), Arch(10, 0), Arch(10, 3))
"""The architectures that upstream writes for first: a gate that admits none of them is no wall
against another one."""

Progress = Callable[[int, int], None]

_FEW = 250_000
"""Bytes of files that a process is given at once, where there are not many."""


class Narrowed(TypedDict, total=False):
    """The fields of a query beside ``sm``, as a caller gives them."""

    like: str | None
    everything: bool
    kinds: Sequence[str]
    paths: Sequence[str]
    within: Sequence[str]
    cached: bool


@dataclass(frozen=True, kw_only=True)
class Query:
    """What to look for, and what to show.

    Args:
        sm: The architecture that may be left out.
        like: One that it is like; by default those that upstream writes for first.
        everything: Show every gate, those of vendored and generated trees too.
        kinds: Show gates of these kinds only; all for none.
        paths: Show gates in files that match one of these patterns only; all for none.
        within: Show gates in these functions or classes only; all for none.
        processes: How many processes to scan with; one a core by default.
        cached: Whether earlier results may be used, and are kept.
    """

    sm: Arch
    like: Arch | None = None
    everything: bool = False
    kinds: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    within: tuple[str, ...] = ()
    processes: int = 0
    cached: bool = True

    @cached_property
    def likes(self) -> tuple[Arch, ...]:
        """The architectures of which a gate must admit one to leave the other out."""
        if self.like is not None:
            return (self.like,)
        return tuple(arch for arch in WRITTEN_FOR if arch != self.sm)

    def check(self) -> None:
        """Refuse what is not known.

        Raises:
            UsageError: An architecture outside the table, or a kind that there is not.
        """
        from gatepatch.errors import did_you_mean

        for arch in filter(None, (self.sm, self.like)):
            if arch not in TABLE:
                known = ", ".join(map(str, TABLE))
                raise UsageError(f"nothing is known of {arch}, only of {known}")
        for kind in self.kinds:
            if kind not in KINDS:
                raise UsageError(f"{kind!r} is no kind of gate", hint=did_you_mean(kind, KINDS))


@dataclass(slots=True)
class _Part:
    """A distribution on its way."""

    target: Target
    files: tuple[SourceFile, ...]
    results: dict[str, dict[str, Any]]
    cached: int = 0
    fresh: bool = False
    problems: list[Problem] = field(default_factory=list)

    @property
    def key(self) -> str:
        """What a job names it by."""
        return f"{self.target.location.base}\0{self.target.distribution}"


def scan(
    environment: Environment,
    distributions: Sequence[str],
    query: Query,
    progress: Progress = lambda done, total: None,
) -> ScanResult:
    """Scan distributions; all of the environment for none.

    Raises:
        TargetError: One of those named is not installed, or cannot be read.
        UsageError: The query is wrong.
    """
    query.check()
    parts = [_part(target, query) for target in _targets(environment, distributions)]
    _fill(parts, query, progress)
    for part in parts:
        if query.cached and part.fresh:
            cache.save(part.target, part.files, part.results)
    shown = [
        part for part in parts if distributions or any(r["gates"] for r in part.results.values())
    ]
    reports = [_report(part, query) for part in shown]
    return ScanResult(
        environment=str(environment.prefix),
        sm=str(query.sm),
        like=tuple(map(str, query.likes)),
        distributions=tuple(scanned for scanned, _, _ in reports),
        findings=tuple(finding for _, found, _ in reports for finding in found),
        folded=tuple(tree for _, _, trees in reports for tree in trees),
        problems=tuple(problem for part in shown for problem in _problems(part)),
        cached=sum(part.cached for part in shown),
    )


def _targets(environment: Environment, distributions: Sequence[str]) -> Iterator[Target]:
    if distributions:
        for name in dict.fromkeys(map(canonical_name, distributions)):
            target = find_target(environment, name)
            if target is None:
                raise TargetError(
                    Problem(
                        message=f"{name} is not installed in {environment.prefix}",
                        hint="name its environment with --python or --prefix",
                    )
                )
            yield target
        return
    entries = [entry for folder in environment.paths for entry in metadata_in(folder)]
    for name in dict.fromkeys(
        canonical_name(e.name.rpartition(".")[0].split("-")[0]) for e in entries
    ):
        try:
            target = find_target(environment, name)
        except (TargetError, OSError):
            continue  # what is damaged is said where it is named
        if target is not None:
            yield target


def _part(target: Target, query: Query) -> _Part:
    problems: list[Problem] = []
    files = files_of(target, problems)
    results = cache.load(target, files) if query.cached else {}
    return _Part(
        target=target, files=files, results=results, cached=len(results), problems=problems
    )


def _fill(parts: Sequence[_Part], query: Query, progress: Progress) -> None:
    """Scan the files of which nothing is known."""
    jobs: list[tuple[pool.Job, int]] = []
    fresh: dict[str, set[str]] = {}
    for part in parts:
        missing = [file for file in part.files if file.path not in part.results]
        part.fresh = bool(missing)
        fresh[part.key] = {file.path for file in missing if file.path.endswith(PYTHON)}
        # Python files last, in order: neighbours import from each other.
        for file in sorted(missing, key=lambda f: (f.path.endswith(PYTHON), f.path)):
            jobs.append(((part.key, file.path, file.file, {}), file.size))
    by_key = {part.key: part for part in parts}
    total, done = len(jobs), 0
    with pool.Pool(query.processes or _cores()) as processes:
        for batch, answers in processes.run(list(pool.batches(jobs))):
            for (key, path, _, _), answer in zip(batch, answers, strict=True):
                by_key[key].results[path] = answer
            done += len(batch)
            progress(done, total)
        for _ in range(borrowed.ROUNDS):
            again = list(_again(by_key, fresh))
            total += len(again)
            fresh = {key: set() for key in by_key}
            for batch, answers in processes.run(list(pool.batches(again, _FEW))):
                for (key, path, _, _), answer in zip(batch, answers, strict=True):
                    if borrowed.join(by_key[key].results[path], answer):
                        fresh[key].add(path)
                done += len(batch)
                progress(done, total)


def _again(
    parts: Mapping[str, _Part], fresh: Mapping[str, set[str]]
) -> Iterator[tuple[pool.Job, int]]:
    """The files that ask predicates of other files, which are known by now.

    Args:
        parts: The distributions.
        fresh: The files of each whose predicates are new.
    """
    for key, part in parts.items():
        users = borrowed.users(part.files, part.results, fresh[key])
        for file in part.files:
            if given := users.get(file.path):
                yield (key, file.path, file.file, given), file.size


def _cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def _problems(part: _Part) -> Iterator[Problem]:
    yield from part.problems
    for path, result in sorted(part.results.items()):
        if message := result.get("problem"):
            yield Problem(message=message, where=f"{part.target.distribution}: {path}")


@dataclass(slots=True)
class _Counts:
    """What is counted: of a distribution, or of a tree that is folded."""

    files: int = 0
    gates: int = 0
    leaves_out: int = 0

    def add(self, gates: Sequence[Any], query: Query) -> None:
        """Count the gates of one more file."""
        self.files += 1
        self.gates += len(gates)
        self.leaves_out += sum(_leaves_out(gate, query) for gate in gates)


def _leaves_out(gate: Sequence[Any], query: Query) -> bool:
    return leaves_out(gate[9], gate[10], query.sm, query.likes)


def _report(part: _Part, query: Query) -> tuple[Scanned, list[Finding], list[Folded]]:
    """Count a distribution's gates, and pick those to be shown."""
    name = part.target.distribution
    every = _Counts()
    trees: dict[tuple[str, Tree], _Counts] = {}
    findings: list[Finding] = []
    holding = [(f.path, r) for f in part.files if (r := part.results.get(f.path)) and r["gates"]]
    for path, result in holding:
        every.add(result["gates"], query)
        if result["tree"] != "own" and not query.everything:
            key = (folder_of(path, result["tree"]), result["tree"])
            trees.setdefault(key, _Counts()).add(result["gates"], query)
        elif _matches(path, query.paths):
            findings += _shown(name, path, result, query)
    gates = [gate for _, result in holding for gate in result["gates"]]
    scanned = Scanned(
        distribution=name,
        version=part.target.version,
        root=str(part.target.location.base),
        files=len(part.files),
        size=sum(file.size for file in part.files),
        gates=every.gates,
        leaves_out=every.leaves_out,
        unknown=sum(bool(gate[13]) for gate in gates),
        kinds=dict(sorted(Counter(gate[4] for gate in gates).items())),
    )
    folded = [
        Folded(
            distribution=name,
            path=path,
            tree=tree,
            files=counts.files,
            gates=counts.gates,
            leaves_out=counts.leaves_out,
        )
        for (path, tree), counts in trees.items()
    ]
    return scanned, findings, folded


def _shown(name: str, path: str, result: Mapping[str, Any], query: Query) -> Iterator[Finding]:
    for gate in result["gates"]:
        out = _leaves_out(gate, query)
        if query.kinds and gate[4] not in query.kinds:
            continue
        if query.within and not any(_lies_in(gate[2], name) for name in query.within):
            continue
        if query.everything or out or gate[13]:
            yield read_back(gate, distribution=name, path=path, tree=result["tree"], leaves_out=out)


def _matches(path: str, patterns: Sequence[str]) -> bool:
    return not patterns or any(
        fnmatch.fnmatch(path, pattern)
        or path == pattern
        or path.startswith(pattern.rstrip("/") + "/")
        for pattern in patterns
    )


def _lies_in(place: str, name: str) -> bool:
    """Whether a qualified name is the one named, or lies in it; its last names are enough."""
    names, wanted = (text.replace("::", ".").split(".") for text in (place, name))
    return any(
        names[start : start + len(wanted)] == wanted
        for start in range(len(names) - len(wanted) + 1)
    )
