"""Tell which gate of one release is which of another."""

from __future__ import annotations

import difflib
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from gatepatch.scanning.records import Finding

Kind: TypeAlias = Literal["changed", "came", "went", "moved"]
KINDS: tuple[Kind, ...] = ("changed", "came", "went", "moved")
_ALIKE = 0.5
"""How much of a condition must be as it was for it to be the same gate, written anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A gate that is not what it was.

    Args:
        kind: ``changed``: its verdict for the architecture did; ``moved``: only where it stands.
        before: As it is in the environment; None where it came.
        after: As it is in the other; None where it went.
    """

    kind: Kind
    before: Finding | None
    after: Finding | None

    @property
    def place(self) -> Finding:
        """The gate, where it stands afterwards if it is there."""
        found = self.after or self.before
        assert found is not None
        return found


def differences(
    before: Sequence[Finding], after: Sequence[Finding], sm: str
) -> tuple[dict[str, int], list[Difference]]:
    """Tell which gate is which, the surest way first."""
    old, new = list(before), list(after)
    counts = dict.fromkeys(("same", "shifted", "rewritten", *KINDS), 0)
    found: list[Difference] = []

    def settle(pairs: Iterable[tuple[Finding, Finding]], otherwise: str) -> None:
        for one, two in pairs:
            changed = _differs(one, two, sm)
            counts["changed" if changed else otherwise] += 1
            if changed or otherwise == "moved":
                kind: Kind = "changed" if changed else "moved"
                found.append(Difference(kind=kind, before=one, after=two))

    settle(_matched(old, new, lambda f: (f.path, f.within, _text(f), f.line)), "same")
    settle(_matched(old, new, lambda f: (f.path, f.within, _text(f))), "shifted")
    for key in _MOVES:
        settle(_matched(old, new, key), "moved")
    settle(_only(old, new), "moved")
    settle(_rewritten(old, new), "rewritten")
    counts["came"], counts["went"] = len(new), len(old)
    found += [Difference(kind="came", before=None, after=one) for one in new]
    found += [Difference(kind="went", before=one, after=None) for one in old]
    return counts, found


def _text(finding: Finding) -> str:
    return " ".join(finding.text.split())


def _name(finding: Finding) -> str:
    return finding.path.rpartition("/")[2]


_MOVES: tuple[Callable[[Finding], Hashable], ...] = (
    lambda f: (_text(f), f.path),
    lambda f: (_text(f), _name(f), f.within),
    lambda f: (_text(f), f.within) if f.within else id(f),
    lambda f: (_text(f), _name(f)),
)
"""What a gate that has moved has kept beside its condition."""


def _matched(
    old: list[Finding], new: list[Finding], key: Callable[[Finding], Hashable]
) -> Iterator[tuple[Finding, Finding]]:
    """Take out the pairs that have a key in common, in their order."""
    places: defaultdict[Hashable, list[Finding]] = defaultdict(list)
    for two in new:
        places[key(two)].append(two)
    pairs = [(one, places[key(one)].pop(0)) for one in old if places.get(key(one))]
    _take(old, new, pairs)
    yield from pairs


def _only(old: list[Finding], new: list[Finding]) -> Iterator[tuple[Finding, Finding]]:
    """Take out what has the only condition of its text that went, and that came."""
    sides = []
    for findings in (old, new):
        by_text: defaultdict[str, list[Finding]] = defaultdict(list)
        for finding in findings:
            by_text[_text(finding)].append(finding)
        sides.append({text: some[0] for text, some in by_text.items() if len(some) == 1})
    pairs = [(one, sides[1][text]) for text, one in sides[0].items() if text in sides[1]]
    _take(old, new, pairs)
    yield from pairs


def _rewritten(old: list[Finding], new: list[Finding]) -> Iterator[tuple[Finding, Finding]]:
    """Take out pairs in one function whose conditions are alike, the most alike first."""
    ratios: list[tuple[float, int, int]] = []
    for i, one in enumerate(old):
        for j, two in enumerate(new):
            if (one.path, one.within, one.kind) == (two.path, two.within, two.kind):
                ratio = difflib.SequenceMatcher(None, _text(one), _text(two)).ratio()
                ratios += [(-ratio, i, j)] if ratio >= _ALIKE else []
    pairs: list[tuple[Finding, Finding]] = []
    taken: tuple[set[int], set[int]] = (set(), set())
    for _, i, j in sorted(ratios):
        if i not in taken[0] and j not in taken[1]:
            taken[0].add(i)
            taken[1].add(j)
            pairs.append((old[i], new[j]))
    _take(old, new, pairs)
    yield from pairs


def _take(old: list[Finding], new: list[Finding], pairs: list[tuple[Finding, Finding]]) -> None:
    gone = {id(finding) for pair in pairs for finding in pair}
    old[:] = [finding for finding in old if id(finding) not in gone]
    new[:] = [finding for finding in new if id(finding) not in gone]


def _differs(one: Finding, two: Finding, sm: str) -> bool:
    """Whether the architecture is treated otherwise: let in, kept out, or no longer known."""
    verdicts = ["unknown" if finding.unknown else finding.verdict[sm] for finding in (one, two)]
    return verdicts[0] != verdicts[1] or one.leaves_out != two.leaves_out
