"""One condition of a directive as a place to edit, and where a pattern matches in it.

A condition is matched and edited in a buffer of its own. For ``#if`` the buffer is the condition
as it stands; for ``#ifdef X`` it is ``defined(X)``, and an edit of it rewrites the directive as
an ``#if``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gatepatch.edits import ByteEdit, splice
from gatepatch.gates.directives import Branch
from gatepatch.gates.preprocessor import ConditionError, parse
from gatepatch.gates.preprocessor_tokens import splice_lines, tokens
from gatepatch.gates.preprocessor_tree import (
    Chain,
    Expr,
    Group,
    children,
    operands,
    shape,
    strip,
    to_source,
    walk,
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Site:
    """A condition that parses, in a buffer.

    Args:
        branch: Whose condition it is.
        buffer: The condition's source.
        expression: The same, parsed; its offsets are the buffer's.
    """

    branch: Branch
    buffer: bytes
    expression: Expr

    def to_file(self, source: bytes, edits: tuple[ByteEdit, ...]) -> tuple[ByteEdit, ...]:
        """Turn edits of the buffer into edits of the file."""
        start, end = self.branch.span
        directive = self.branch.directive
        if not edits or not directive.keyword.endswith("def"):
            return tuple(ByteEdit(start + e.offset, e.old, e.new) for e in edits)
        assert directive.name is not None
        name = directive.name
        keyword = b"elif" if directive.keyword.startswith("el") else b"if"
        return (
            ByteEdit(name.start, source[name.start : name.end], keyword),
            ByteEdit(start, source[start:end], splice(self.buffer, edits)),
        )


def site(source: bytes, branch: Branch) -> Site | None:
    """Return a branch's condition as a place to edit; None if it has none that parses."""
    if branch.condition is None or isinstance(branch.condition, ConditionError):
        return None
    start, end = branch.span
    buffer = source[start:end]
    if branch.directive.keyword.endswith("def"):
        buffer = to_source(branch.condition).encode("latin-1")
    return Site(branch=branch, buffer=buffer, expression=parse(buffer))


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """Where a pattern stands in a condition.

    Args:
        nodes: The operands that it matched, adjacent, with their own parentheses.
        operator: The chain's operator, if there are several.
        around: The operator around the match: ``&&``, ``||``, ``other``; empty where it fills
            parentheses or the condition.
        start: Its first byte in the buffer.
        end: The byte behind its last.
    """

    nodes: tuple[Expr, ...]
    operator: str
    around: str
    start: int
    end: int

    def overlaps(self, other: Match) -> bool:
        """Whether the two have a byte in common."""
        return self.start < other.end and other.start < self.end

    def contains(self, other: Match) -> bool:
        """Whether the other lies within this one."""
        return self.start <= other.start and other.end <= self.end


@dataclass(frozen=True, slots=True)
class Pattern:
    """What to look for: a chain's operands, or one expression."""

    operator: str
    shapes: tuple[Expr, ...]

    @classmethod
    def of(cls, expression: Expr) -> Pattern:
        """Make the pattern that an expression is."""
        inner = strip(expression)
        operator = inner.operator if isinstance(inner, Chain) else ""
        return cls(operator, tuple(map(shape, operands(inner))))


def whole(expression: Expr) -> Match:
    """Return a whole condition as a match."""
    run = next(_runs(expression, ""))
    return _match(run, 0, len(run.nodes))


def find(expression: Expr, pattern: Pattern) -> tuple[Match, ...]:
    """Find a pattern in a condition, parentheses ignored, no two matches overlapping."""
    found: list[Match] = []
    size = len(pattern.shapes)
    for run in _runs(expression, ""):
        if pattern.operator not in ("", run.operator):
            continue
        shapes = tuple(map(shape, run.nodes))
        for first in range(len(shapes) - size + 1):
            if shapes[first : first + size] == pattern.shapes:
                match = _match(run, first, size)
                if not any(map(match.overlaps, found)):
                    found.append(match)
    return tuple(sorted(found, key=lambda match: match.start))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """A chain's operands, flattened, or one node that is no chain."""

    chain: Expr
    nodes: tuple[Expr, ...]
    around: str

    @property
    def operator(self) -> str:
        return self.chain.operator if isinstance(self.chain, Chain) else ""


def _match(run: _Run, first: int, size: int) -> Match:
    nodes = run.nodes[first : first + size]
    full = size == len(run.nodes)
    # The operands may fill parentheses that the flattening went through.
    filled = run.chain if full else _filled(run.chain, nodes)
    place = filled or nodes[0]
    around = run.around if full else "" if filled else run.operator
    return Match(
        nodes=nodes,
        operator=run.operator if size > 1 else "",
        around=around,
        start=place.start,
        end=filled.end if filled else nodes[-1].end,
    )


def _filled(chain: Expr, nodes: tuple[Expr, ...]) -> Expr | None:
    for inner in walk(chain):
        if isinstance(inner, Chain):
            flat = operands(inner)
            if len(flat) == len(nodes) and flat[0] is nodes[0] and flat[-1] is nodes[-1]:
                return inner
    return None


def _runs(node: Expr, around: str) -> Iterator[_Run]:
    """Yield each flattened chain, and each node that is none, outermost first."""
    while isinstance(node, Group):
        node, around = node.inner, ""
    yield _Run(chain=node, nodes=operands(node), around=around)
    if not isinstance(node, Chain):
        for child in children(node):
            yield from _runs(child, "other")
        return
    for operand in operands(node):
        if isinstance(strip(operand), Chain):
            yield from _runs(operand, node.operator)
        else:
            for child in children(strip(operand)):
                yield from _runs(child, "other")


def is_balanced(text: bytes) -> bool:
    """Whether the parentheses of a piece of a condition pair up inside it."""
    depth = 0
    for token in tokens(splice_lines(text)):
        depth += (token.text == "(") - (token.text == ")")
        if depth < 0:
            return False
    return depth == 0
