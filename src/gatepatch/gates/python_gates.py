"""Plan the edits of Python gates: each is changed by the first way that is proved."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator, Sequence
from dataclasses import replace

from gatepatch.arch import TABLE
from gatepatch.edits import ByteEdit, line_of, splice
from gatepatch.errors import Problem, RefusedError
from gatepatch.gates import explain
from gatepatch.gates.python_candidates import (
    UNITS,
    Literal,
    Unit,
    candidates,
    constant,
    literal_edits,
)
from gatepatch.gates.python_prover import Prover
from gatepatch.gates.python_source import Expression, Match, Source, flattened
from gatepatch.gates.result import Change
from gatepatch.spec import GateEdit, Goal, Replace
from gatepatch.verdict import Verdict, differences, wanted


def plan_gate(prover: Prover, edit: GateEdit) -> list[Change]:
    """Open or close the conditions that match.

    Raises:
        RefusedError: There are fewer or more, or one cannot be proved.
    """
    assert edit.condition is not None
    goal = replace(prover.context.goal, action=edit.action)
    found = prover.source.matches(edit.condition, edit.within)
    done: list[Match] = []
    for match in _results(prover, edit, goal):
        # Where the result is wider than the condition, it has the condition in it.
        found = [other for other in found if not _inside(prover.source, other, match)]
        if not any(_overlap(prover.source, match, other) for other in (*found, *done)):
            done.append(match)
    starts = [prover.source.span(m.nodes[0])[0] for m in (*found, *done)]
    _check_count(prover, edit, starts, edit.condition)
    changes = [_in_place(prover, edit, match) for match in done]
    tops: dict[int, list[Match]] = {}
    for match in found:
        tops.setdefault(id(match.top.node), []).append(match)
    return changes + [c for group in tops.values() for c in _change(prover, edit, goal, group)]


def _results(prover: Prover, edit: GateEdit, goal: Goal) -> Iterator[Match]:
    """Places that already read as the edit would make the condition read."""
    pattern = Source("", f"({edit.condition})\n".encode())
    top = pattern.tops[0]
    nodes = tuple(flattened(top.node)) if isinstance(top.node, ast.BoolOp) else (top.node,)
    parent = top.node if isinstance(top.node, ast.BoolOp) else None
    for candidate in candidates(pattern, Match(nodes, parent, top), edit, goal):
        result = splice(pattern.data, candidate).decode().strip()
        for match in prover.source.matches(result, edit.within):
            before = prover.verdict(match.top)
            if edit.unproved or before == wanted(before, goal, shut=_shut(edit, match.top)):
                yield match


def _in_place(prover: Prover, edit: GateEdit, match: Match) -> Change:
    known = prover.verdict(match.top)
    unproved = edit.unproved if known.unknown else ""
    return prover.change(
        edit, match.top.node, match.top.within, (), before=known, after=known, unproved=unproved
    )


def _change(prover: Prover, edit: GateEdit, goal: Goal, group: Sequence[Match]) -> list[Change]:
    """Change all matches in one Boolean expression, by the first way that is proved."""
    top = group[0].top
    before = prover.verdict(top)
    if not edit.unproved:
        _check_gate(prover, edit, goal, group[0], before)
    target = _target(prover, edit, goal, group, before)
    if target == before and not before.unknown and prover.asks(top):
        return [_in_place(prover, edit, match) for match in group]
    problems: list[str] = []
    ways = [list(candidates(prover.source, match, edit, goal)) for match in group]
    for way in zip(*ways, strict=False):
        after = prover.verdict_after(top, [e for part in way for e in part])
        if after is None:
            continue
        unknown = before.unknown or after.unknown
        wrong = differences(target, after)
        proved = not wrong and not unknown
        if proved or (edit.unproved and (unknown or not prover.asks(top))):
            return [
                prover.change(
                    edit,
                    top.node,
                    top.within,
                    part,
                    before=before,
                    after=after,
                    unproved="" if proved else edit.unproved,
                )
                for part in way
            ]
        problems.append(explain.why(goal, before, after, wrong, unknown))
    raise _refused(prover, edit, group[0], problems, before)


def _check_gate(prover: Prover, edit: GateEdit, goal: Goal, match: Match, before: Verdict) -> None:
    """Refuse what is no gate, and what the architecture to be like does not pass."""
    problem = ""
    hint = None
    if before.unknown:
        return
    text = " ".join(prover.source.text(match.top.node).split())
    parts = [replace(match.top, node=node) for node in match.nodes]
    if not any(map(prover.asks, parts)):
        text = " ".join(map(prover.source.text, match.nodes))
        problem = "it does not test the architecture, so there is nothing to open or close"
        hint = "name the condition that does, or say in unproved: why this one stands for it"
    elif not all(map(prover.is_truth, parts)):
        text = " ".join(map(prover.source.text, match.nodes))
        problem = "it is a value and no condition: what uses it would change"
        hint = "name the comparison that it stands in"
    elif goal.like is not None and before.table[goal.like] is _shut(edit, match.top):
        problem = f"it leaves {goal.like} out, which the new ones are to be like"
        hint = "name another like:, or another condition"
    if problem:
        raise RefusedError(
            Problem(
                message=f"{text[:200]}: {problem}",
                where=prover.where(edit, prover.source.span(match.nodes[0])[0]),
                hint=hint,
            )
        )


def _target(
    prover: Prover, edit: GateEdit, goal: Goal, group: Sequence[Match], before: Verdict
) -> Verdict:
    """The verdict that the whole expression must have afterwards.

    To open a gate is to give the operands that match the verdict of ``like``. What else the
    expression tests stays as it is, even where that is the architecture; but if that alone
    still leaves an architecture out, the edit would be for nothing.
    """
    top = group[0].top
    shut = _shut(edit, top)
    strict = wanted(before, goal, shut=shut)
    if goal.action == "close" or goal.like is None:
        return strict
    window = [node for match in group for node in match.nodes]
    frame = prover.before.frame(top.functions, top.bound)
    found = prover.before.meaning.shared(top.node, window, goal.archs, goal.like, frame)
    blocked = [a for a in sorted(goal.archs) if found.table[a] is shut]
    if blocked and any(strict.table[a] is not shut for a in blocked):
        raise RefusedError(
            Problem(
                message=f"would still leave {', '.join(map(str, blocked))} out: another part "
                f"of the condition does: {' '.join(prover.source.text(top.node).split())[:200]}",
                where=prover.where(edit, prover.source.span(group[0].nodes[0])[0]),
                hint="open that part too: name a longer condition",
            )
        )
    return found


def _shut(edit: GateEdit, top: Expression) -> bool:
    return top.rejects if edit.shut is None else edit.shut


def plan_keyword(prover: Prover, edit: GateEdit) -> list[Change]:
    """Open or close the lists of architectures that are a keyword's value.

    Raises:
        RefusedError: There are fewer or more, or one is no such list, or cannot be proved.
    """
    assert edit.keyword is not None
    goal = replace(prover.context.goal, action=edit.action)
    values = prover.source.keywords(edit.keyword, edit.within)
    found = [(n, w) for n, w in values if isinstance(n, ast.Tuple | ast.List | ast.Set)]
    starts = [prover.source.span(node)[0] for node, _ in found]
    others = "; ".join(
        f"line {node.lineno}: {edit.keyword}={prover.source.text(node)[:80]}, which is no list"
        for node, _ in values
        if not isinstance(node, ast.Tuple | ast.List | ast.Set)
    )
    _check_count(prover, edit, starts, f"{edit.keyword}=[…]", others)
    return [_keyword_change(prover, edit, goal, node, within) for node, within in found]


def _keyword_change(
    prover: Prover, edit: GateEdit, goal: Goal, node: Literal, within: str
) -> Change:
    start, end = prover.source.span(node)
    text = prover.source.text(node)

    def refused(message: str, hint: str | None = None) -> RefusedError:
        return RefusedError(Problem(message=message, where=prover.where(edit, start), hint=hint))

    unit = unit_of(node)
    if unit is None:
        raise refused(f"is no list of architectures: {text}")
    before = membership(node, unit)
    if goal.like is not None and before.table[goal.like] is False:
        raise refused(
            f"{text}: it leaves {goal.like} out, which the new ones are to be like",
            "name another like:, or another keyword",
        )
    target = wanted(before, goal)
    if target == before:
        return prover.change(edit, node, within, (), before=before, after=before)
    problems = []
    for way in literal_edits(prover.source, node, goal):
        shifted = [replace(e, offset=e.offset - start) for e in way]
        result = ast.parse(splice(prover.source.data[start:end], shifted).decode(), mode="eval")
        assert isinstance(result.body, ast.Tuple | ast.List | ast.Set | ast.Call)
        after = membership(result.body, unit)
        wrong = differences(target, after)
        if not wrong:
            return prover.change(edit, node, within, way, before=before, after=after)
        problems.append(explain.why(goal, before, after, wrong, ()))
    reasons = "; ".join(dict.fromkeys(problems)) or "no way to change it is known"
    raise refused(f"cannot be proved: {text}: {reasons}")


def unit_of(node: Literal) -> Unit | None:
    """What the elements of a list stand for; None if they are no architectures."""
    values = [constant(element) for element in node.elts]
    for unit in UNITS:
        known = {unit(arch) for arch in TABLE}
        if values and all(any(v == k and type(v) is type(k) for k in known) for v in values):
            return unit
    for unit in UNITS:
        kind, known = type(unit(TABLE[0])), {unit(arch) for arch in TABLE}
        if all(type(value) is kind for value in values) and known & set(values):
            return unit
    return None


def membership(node: Literal | ast.Call, unit: Unit) -> Verdict:
    """The verdict of a list of architectures: which of them are in it."""
    elements = node.args if isinstance(node, ast.Call) else node.elts
    values = [constant(element) for element in elements]
    return Verdict({arch: unit(arch) in values for arch in TABLE})


def plan_replace(prover: Prover, edit: Replace) -> list[Change]:
    """Replace the expressions that match.

    Raises:
        RefusedError: There are fewer or more, or one is no gate, or cannot be proved.
    """
    found = prover.source.matches(edit.expression, edit.within)
    done = prover.source.matches(edit.by, edit.within)
    fresh = [m for m in found if not any(_inside(prover.source, m, d) for d in done)]
    starts = [prover.source.span(m.nodes[0])[0] for m in (*fresh, *done)]
    _check_count(prover, edit, starts, edit.expression)
    changes = [_replaced(prover, edit, match) for match in fresh]
    for match in done:
        known = prover.verdict(match.top)
        top = match.top
        changes.append(prover.change(edit, top.node, top.within, (), before=known, after=known))
    return changes


def _replaced(prover: Prover, edit: Replace, match: Match) -> Change:
    top = match.top
    way = (_replacement(prover.source, edit, match),)
    before, after = prover.verdict(top), prover.verdict_after(top, way)
    unproved = edit.unproved
    if after is None or not (prover.asks(top) or before.is_gate or after.is_gate):
        if not unproved:
            raise RefusedError(
                Problem(
                    message="the replaced expression is no gate, so nothing can be proved",
                    where=prover.where(edit, prover.source.span(match.nodes[0])[0]),
                    hint="say in unproved why it may stand",
                )
            )
    else:
        goal = prover.context.goal
        unknown = before.unknown or after.unknown
        wrong = differences(wanted(before, goal, shut=top.rejects), after)
        if not (wrong or unknown):
            unproved = ""
        elif not unproved:
            raise _refused(
                prover, edit, match, [explain.why(goal, before, after, wrong, unknown)], before
            )
    return prover.change(
        edit, top.node, top.within, way, before=before, after=after, unproved=unproved
    )


def _replacement(source: Source, edit: Replace, match: Match) -> ByteEdit:
    by = ast.parse(f"({edit.by})", mode="eval").body
    chain = match.parent if isinstance(match.parent, ast.BoolOp) else None
    whole = chain is not None and len(flattened(chain)) == len(match.nodes)
    root = match.nodes[0] is match.top.node or (whole and chain is match.top.node)
    start, end = source.outer(match.nodes[0])[0], source.outer(match.nodes[-1])[1]
    if root:
        start, end = source.span(match.top.node)
    loose = isinstance(by, ast.BoolOp | ast.IfExp | ast.Lambda | ast.NamedExpr)
    if isinstance(by, ast.BoolOp) and chain is not None and not whole:
        loose = not isinstance(by.op, type(chain.op))
    elif root and not match.top.tight:
        loose = isinstance(by, ast.NamedExpr)
    elif whole:
        # The parentheses of the chain stay around it.
        loose = False
    text = f"({edit.by})" if loose else edit.by
    return ByteEdit(start, source.data[start:end], text.encode())


def _check_count(
    prover: Prover,
    edit: GateEdit | Replace,
    starts: Sequence[int],
    what: str,
    others: str = "",
) -> None:
    if edit.count == len(starts) or (edit.count is None and starts):
        return
    lines = [line_of(prover.source.data, start) for start in sorted(starts)]
    expected = "at least 1" if edit.count is None else str(edit.count)
    found = (
        "on lines " + ", ".join(map(str, lines[:10])) if lines else others or _nearest(prover, what)
    )
    within = f" within {edit.within}" if edit.within else ""
    raise RefusedError(
        Problem(
            message=f"expected {expected} of `{what}`{within}, found {len(lines)}: {found}",
            where=f"{prover.context.path} ({edit.where})",
        )
    )


def _nearest(prover: Prover, what: str) -> str:
    texts = {
        " ".join(prover.source.text(top.node).split()): top
        for top in prover.source.tops
        if isinstance(top.node, ast.BoolOp | ast.Compare | ast.Call | ast.Name | ast.UnaryOp)
    }
    near = difflib.get_close_matches(what, texts, n=3, cutoff=0.4)
    listed = "; ".join(
        f"line {texts[text].node.lineno}: {text[:160]}"
        + (f" (in {texts[text].within})" if texts[text].within else "")
        for text in near
    )
    return f"the nearest: {listed}" if near else "and nothing like it"


def _refused(
    prover: Prover,
    edit: GateEdit | Replace,
    match: Match,
    problems: Sequence[str],
    before: Verdict,
) -> RefusedError:
    reasons = "; ".join(list(dict.fromkeys(problems))[:3]) or "no operand can be derived from it"
    hint = None
    if isinstance(edit, GateEdit) and edit.operand is None and not problems:
        hint = "name the operand in with:"
    if before.unknown:
        reasons = "; ".join(before.unknown)
        hint = "give the meaning in predicates:, or say in unproved: why it may stand"
    text = " ".join(prover.source.text(match.top.node).split())
    return RefusedError(
        Problem(
            message=f"cannot be proved: {text[:200]}: {reasons}",
            where=prover.where(edit, prover.source.span(match.nodes[0])[0]),
            hint=hint,
        )
    )


def _overlap(source: Source, first: Match, second: Match) -> bool:
    return (
        source.span(first.nodes[0])[0] < source.span(second.nodes[-1])[1]
        and source.span(second.nodes[0])[0] < source.span(first.nodes[-1])[1]
    )


def _inside(source: Source, inner: Match, outer: Match) -> bool:
    start, end = source.span(outer.nodes[0])[0], source.span(outer.nodes[-1])[1]
    return start <= source.span(inner.nodes[0])[0] and source.span(inner.nodes[-1])[1] <= end
