"""Judge what edits make of a directive, on the bytes that they produce."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from gatepatch.boolean import to_text
from gatepatch.edits import ByteEdit, splice
from gatepatch.gates.cuda_macros import Macros, reach, read_macros
from gatepatch.gates.directives import Branch, Scan, scan
from gatepatch.spec import Goal
from gatepatch.verdict import Verdict, arch_of, wanted


class Prover:
    """The verdicts of one file's directives, before edits and after them.

    Args:
        source: The file.
        goal: What every gate edit is to bring about.
    """

    def __init__(self, source: bytes, goal: Goal):
        self.source = source
        self.goal = goal
        self.scan: Scan = scan(source)
        self.macros: Macros = read_macros(self.scan)
        self._verdicts: dict[bytes, Verdict] = {}

    def after(self, branch: Branch, edits: Iterable[ByteEdit]) -> bytes:
        """Return the directive as edits of the file leave it.

        Raises:
            ValueError: Two of them overlap.
        """
        start, end = branch.directive.start, branch.directive.end
        moved = [ByteEdit(edit.offset - start, edit.old, edit.new) for edit in edits]
        return splice(self.source[start:end], moved)

    def verdict(self, branch: Branch, edits: Iterable[ByteEdit] = ()) -> Verdict:
        """Return a directive's verdict after edits, read from the bytes anew.

        Raises:
            ValueError: Two of the edits overlap.
        """
        text = self.after(branch, edits)
        if text not in self._verdicts:
            (alone,) = scan(text).branches.values()
            self._verdicts[text] = self.macros.verdict(alone.condition)
        return self._verdicts[text]

    def wanted(self, branch: Branch, before: Verdict, shut: bool | None) -> Verdict:
        """Return the verdict that an edit of a directive must produce.

        Args:
            shut: For ``close``: the value that leaves an architecture out; None to tell it from
                what the directive guards.
        """
        if shut is None:
            shut = self.scan.rejects(self.source, branch)
        return wanted(before, self.goal, shut=shut)

    def complaints(self, expected: Verdict, found: Verdict) -> tuple[str, ...]:
        """Say where a verdict is not what it must be, an architecture at a time; empty if proved."""
        said: dict[str, list[str]] = {}
        passes: dict[str, int] = {}
        for point, must in expected.table.items():
            arch = arch_of(point)
            name = "the host" if arch is None else str(arch)
            passes[name] = passes.get(name, 0) + 1
            if (value := found.table[point]) != must:
                verbs = ("is", "must be") if arch in self.goal.archs else ("becomes", "must stay")
                text = f"{verbs[0]} {to_text(value)}, {verbs[1]} {to_text(must)}"
                said.setdefault(name, []).append(f"{point} {text}")
        return tuple(
            f"{name} {texts[0].partition(' ')[2]}"
            if _same(texts, passes[name])
            else "; ".join(texts)
            for name, texts in said.items()
        )


def _same(texts: list[str], passes: int) -> bool:
    """Whether all passes of an architecture have the same to say."""
    return len(texts) == passes and len({text.partition(" ")[2] for text in texts}) == 1


class Outcome:
    """What all edits of a file together make of its directives."""

    def __init__(self, before: Prover, edits: Sequence[ByteEdit]):
        self.before = before
        self.edits = edits
        self.after = Prover(splice(before.source, edits), before.goal)

    def branch(self, branch: Branch) -> Branch | None:
        """Return the branch that a branch has become; None if an edit took it away."""
        start = branch.directive.start
        moved = start + sum(len(e.new) - len(e.old) for e in self.edits if e.offset < start)
        return self.after.scan.branches.get(moved)

    def verdict(self, branch: Branch) -> Verdict | None:
        """Return what the verdict of a branch has become."""
        result = self.branch(branch)
        return None if result is None else self.after.verdict(result)

    def obstacle(self, branch: Branch) -> Branch | None:
        """Return a branch that keeps what this one guards from the architectures opened.

        It may be around this one, or before it in the same ``#if``.
        """
        result = self.branch(branch)
        if result is None or self.before.goal.action == "close":
            return None
        there = wanted(reach(branch, _judge(self.before)), self.before.goal)
        here = reach(result, _judge(self.after))
        points = [point for point in there.table if arch_of(point) in self.before.goal.archs]
        if all(there.table[point] == here.table[point] for point in points):
            return None
        for other in _around(branch):
            expected = wanted(_judge(self.before)(other), self.before.goal)
            found = self.verdict(other)
            if found is None or any(expected.table[p] != found.table[p] for p in points):
                return other
        return branch


def _judge(prover: Prover) -> Callable[[Branch], Verdict]:
    return lambda branch: prover.macros.verdict(branch.condition)


def _around(branch: Branch) -> Iterator[Branch]:
    """Yield the branches before a branch in its ``#if``, then those around it."""
    yield from branch.earlier
    if branch.parent is not None:
        yield branch.parent
        yield from _around(branch.parent)
