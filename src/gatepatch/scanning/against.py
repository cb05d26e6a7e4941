"""Compare the gates of two releases: what an upgrade changes for one architecture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gatepatch.environment import Environment
from gatepatch.errors import Problem, TargetError
from gatepatch.metadata import canonical_name
from gatepatch.scanning.matching import KINDS, Difference, differences
from gatepatch.scanning.records import Scanned, ScanResult
from gatepatch.scanning.scan import Progress, Query, scan
from gatepatch.scanning.unpacked import names_of, opened
from gatepatch.target import find_target


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """A distribution in both, with its counts; those of ``Difference`` include what is not shown.

    Args:
        before: In the environment.
        after: In the other.
        same: Gates on the very line that they were on.
        shifted: Gates of which only the line changed.
        rewritten: Gates that are written differently, with the verdict that they had.
    """

    distribution: str
    before: Scanned
    after: Scanned
    same: int
    shifted: int
    rewritten: int
    changed: int
    came: int
    went: int
    moved: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What differs between an environment and another.

    Args:
        other: What was named: a prefix, an interpreter, a wheel or a folder.
        everything: Whether gates are shown that have nothing to do with the architecture.
        differences: By distribution, kind, path and line.
        problems: Files that could not be read, and why.
    """

    environment: str
    other: str
    sm: str
    like: tuple[str, ...]
    everything: bool
    distributions: tuple[Compared, ...]
    differences: tuple[Difference, ...]
    problems: tuple[Problem, ...] = ()


def against(
    environment: Environment,
    other: Path,
    distributions: Sequence[str],
    query: Query,
    progress: Progress = lambda done, total: None,
) -> Comparison:
    """Compare an environment's distributions with another's.

    Args:
        environment: What there is.
        other: An environment's prefix or interpreter, a wheel, or a folder of wheels.
        distributions: Which; for none those of the wheels, or all that both environments have.
        query: As for a scan. Vendored and generated trees are compared with ``everything`` only.
        progress: Is told how many files are done, and of how many.

    Raises:
        TargetError: A distribution is missing on one side, or cannot be read.
        UsageError: The query is wrong, or ``other`` is nothing that can be scanned.
    """
    query.check()
    wanted = tuple(dict.fromkeys(map(canonical_name, distributions)))
    if not wanted:
        wanted = tuple(name for name in names_of(other) if find_target(environment, name))
    every = replace(query, everything=True)
    with opened(other, wanted) as second:
        temporary = bool(names_of(other))
        _check_there(second, wanted, other)
        now = scan(environment, wanted, every, progress)
        names = wanted or tuple(
            one.distribution
            for one in now.distributions
            if find_target(second, one.distribution) is not None
        )
        # Nothing of a folder that is soon gone need be kept.
        kept = replace(every, cached=every.cached and not temporary)
        then = scan(second, names, kept, progress) if names else replace(now, distributions=())
    if temporary:
        unpacked = (replace(one, root=str(other)) for one in then.distributions)
        then = replace(then, distributions=tuple(unpacked))
    return _compare(now, then, other, query)


def _check_there(second: Environment, wanted: Iterable[str], other: Path) -> None:
    for name in wanted:
        if find_target(second, name) is None:
            raise TargetError(
                Problem(
                    message=f"{name} is not in it",
                    where=str(other),
                    hint="name another environment or wheel with --against",
                )
            )


def _compare(now: ScanResult, then: ScanResult, other: Path, query: Query) -> Comparison:
    compared: list[Compared] = []
    shown: list[Difference] = []
    after_of = {one.distribution: one for one in then.distributions}
    for before in now.distributions:
        if (after := after_of.get(before.distribution)) is None:
            continue
        sides = [
            [
                finding
                for finding in result.findings
                if finding.distribution == before.distribution
                and (query.everything or finding.tree == "own")
            ]
            for result in (now, then)
        ]
        counts, found = differences(sides[0], sides[1], str(query.sm))
        compared.append(
            Compared(distribution=before.distribution, before=before, after=after, **counts)
        )
        shown += sorted(
            (one for one in found if query.everything or _concerns(one)),
            key=lambda one: (KINDS.index(one.kind), one.place.path, one.place.line),
        )
    return Comparison(
        environment=now.environment,
        other=str(other),
        sm=now.sm,
        like=now.like,
        everything=query.everything,
        distributions=tuple(compared),
        differences=tuple(shown),
        problems=(*now.problems, *then.problems),
    )


def _concerns(one: Difference) -> bool:
    """Whether a difference is of what leaves the architecture out, or may."""
    return one.kind == "changed" or one.place.leaves_out or bool(one.place.unknown)
