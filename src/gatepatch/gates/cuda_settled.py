"""What the macros are that a file makes depend on the architecture, directive by directive.

For one who reads: an edit's proof takes such a macro for unknown. A macro that a file defines is
taken for not defined before, unless the file tests that, as in ``#ifndef X``; in
``#if !defined(X) && …`` straight around its definition the test is the usual idiom of headers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from gatepatch.arch import CUDA_PASSES, CudaPass
from gatepatch.boolean import Bool, and_, not_, or_
from gatepatch.gates.cuda_macros import (
    NOTHING_HIDDEN,
    Macros,
    is_target_macro,
    mentions,
    reach,
    speaks_of_architecture,
)
from gatepatch.gates.directives import Branch, Directive, Scan
from gatepatch.gates.preprocessor import ConditionError, parse_tokens
from gatepatch.gates.preprocessor_eval import (
    Free,
    Known,
    Macro,
    Settled,
    Unknown,
    Value,
    evaluate,
    one_of,
    settled,
    unread,
    value_of,
)
from gatepatch.gates.preprocessor_tokens import Token
from gatepatch.gates.preprocessor_tree import (
    Call,
    Chain,
    Defined,
    Group,
    Name,
    Number,
    Unary,
    macros,
    operands,
    strip,
    to_source,
)
from gatepatch.verdict import Point, Verdict


class Outside:
    """What macros mean that a file does not define: nothing is known of them here."""

    named = False
    """Whether the last one that was asked for was read by its name alone, or what it hangs on."""

    def meaning(self, name: str, compilation: CudaPass) -> Macro | None:
        """Return what a macro means in a pass; None where that is not known."""
        return None


_TARGET = re.compile(r"[A-Za-z]\w*_CUDA_ARCH")
"""A build's own name for ``__CUDA_ARCH__``, which the host's code can read too."""

_DEEP = 16


@dataclass(frozen=True, slots=True, eq=False)
class _Definition:
    """A ``#define``: its parameters, if it has any, and its text."""

    directive: Directive
    parameters: tuple[str, ...] | None
    body: tuple[Token, ...]


@dataclass(frozen=True, slots=True)
class _Case:
    """What a macro is in some cases: a definition, nothing (None), or what it was before."""

    definition: _Definition | bool | None
    when: Mapping[Point, Bool]


_BEFORE = True
_ALWAYS: Mapping[Point, Bool] = dict.fromkeys(CUDA_PASSES, True)


def named_for_the_target(name: str, compilation: CudaPass) -> Macro | None:
    """Read a macro by its name alone, such as ``MY_CUDA_ARCH``."""
    if _TARGET.fullmatch(name) is None:
        return None
    return Free() if compilation.arch is None else Known(compilation.arch.cuda_arch)


@dataclass(slots=True)
class Settling:
    """Follows the macros of a file that depend on the architecture, or whose name speaks of it.

    Args:
        scan: The file's directives.
        meanings: What its macros mean where they are not followed.
        outside: What macros mean that it does not define.
        verdicts: What was found: the verdicts of gates, and of what definitions stand in.
        by_name: Those of them with a macro that was read by its name alone.
        named: Whether one was read so since this was last set to false.
    """

    scan: Scan
    meanings: Macros
    outside: Outside
    verdicts: dict[Branch, Verdict] = field(default_factory=dict)
    by_name: set[Branch] = field(default_factory=set)
    named: bool = False
    _state: dict[str, list[_Case]] = field(default_factory=dict)
    _known: dict[str, tuple[Verdict, bool]] = field(default_factory=dict)
    _meant: dict[tuple[str, CudaPass], tuple[Macro, bool]] = field(default_factory=dict)

    @property
    def followed(self) -> frozenset[str]:
        """The macros that are followed."""
        return frozenset(self._state)

    def run(self) -> None:
        """Go through the file."""
        followed = self._followed()
        self._state = {n: [_Case(self._first(n), _ALWAYS)] for n in followed}
        needed = self._needed(followed)
        for directive in self.scan.directives:
            branch = self.scan.branches.get(directive.start)
            if branch is not None:
                if branch in needed:
                    self._judge(branch, followed)
            elif (name := _changed(directive)) in followed:
                self._change(name, directive)
                self._known.clear()
                self._meant.clear()

    def meaning(self, name: str, compilation: CudaPass) -> Macro:
        """Return what a macro means where the file has been gone through to."""
        return self._meaning(name, compilation, frozenset())

    def _followed(self) -> frozenset[str]:
        """The macros that it defines and that do, or may, depend on the architecture."""
        defined = {d.body[0].text for d in self.scan.directives if d.keyword == "define" and d.body}
        for branch in self.scan.branches.values():
            if (name := self._guarding(branch)) and name not in self.meanings.hidden:
                defined.discard(name)
        return frozenset(filter(self.meanings.depends, defined))

    def _first(self, name: str) -> bool | None:
        """What a macro is before anything: nothing, unless the file asks whether it is there."""
        if is_target_macro(name):
            return _BEFORE
        asked = False
        for directive in self.scan.directives:
            branch = self.scan.branches.get(directive.start)
            if branch is not None:
                asked = asked or (
                    any(token.text == name for token in directive.body)
                    and not self._is_idiom(branch, name)
                )
            elif _changed(directive) == name:
                # No build gives a macro that takes arguments.
                return (asked and _definition(directive).parameters is None) or None
        return None

    def _is_idiom(self, branch: Branch, name: str) -> bool:
        if branch.condition is None or isinstance(branch.condition, ConditionError):
            return False
        chain = strip(branch.condition)
        if not isinstance(chain, Chain) or chain.operator != "&&":
            return False
        asks = [part for part in map(strip, operands(chain)) if name in macros(part)]
        return all(
            isinstance(part, Unary)
            and part.operator == "!"
            and isinstance(strip(part.operand), Defined)
            for part in asks
        )

    def _needed(self, followed: frozenset[str]) -> set[Branch]:
        """The branches whose verdict is wanted: gates, and those that definitions stand in."""
        needed = {
            branch
            for branch in self.scan.branches.values()
            if mentions(branch, self.meanings.depends)
        }
        for directive in self.scan.directives:
            if _changed(directive) in followed:
                needed.update(_around(directive.branch))
        return needed

    def _judge(self, branch: Branch, followed: frozenset[str]) -> None:
        if (name := self._guarding(branch)) and name not in followed:
            self.verdicts[branch] = Verdict(_ALWAYS)
            return
        condition = branch.condition
        if condition is None or isinstance(condition, ConditionError):
            self.verdicts[branch] = self.meanings.verdict(condition)
            return
        if not mentions(branch, self._is_of_file):
            self.verdicts[branch] = NOTHING_HIDDEN.verdict(condition)
            return
        text = to_source(condition)
        if text not in self._known:
            self.named = False
            table: dict[Point, Bool] = {
                p: evaluate(condition, self._lookup(p, frozenset())) for p in CUDA_PASSES
            }
            self._known[text] = (Verdict(table), self.named)
        self.verdicts[branch], named = self._known[text]
        if named:
            self.by_name.add(branch)

    def _is_of_file(self, name: str) -> bool:
        """Whether a macro may mean another thing here than in other files."""
        return name in self._state or _may_be_settled(name)

    def _guarding(self, branch: Branch) -> str:
        """The macro that keeps a file, or a part of it, from being read twice; empty if none."""
        if not self.scan.is_include_guard(branch):
            return ""
        definition = self.scan.directives[self.scan.directives.index(branch.directive) + 1].body
        whole = self.scan.ends.get(branch) is self.scan.directives[-1]
        return definition[0].text if whole or len(definition) == 1 else ""

    def _change(self, name: str, directive: Directive) -> None:
        around = directive.branch
        reached = reach(around, self.verdicts.__getitem__).table if around else _ALWAYS
        definition = _definition(directive) if directive.keyword == "define" else None
        cases = [_Case(definition, reached)]
        for case in self._state[name]:
            when = {p: and_(value, not_(reached[p])) for p, value in case.when.items()}
            if any(value is not False for value in when.values()):
                cases.append(_Case(case.definition, when))
        self._state[name] = cases

    def _lookup(self, compilation: CudaPass, active: frozenset[str]) -> Callable[[str], Macro]:
        return lambda name: self._meaning(name, compilation, active)

    def _meaning(self, name: str, compilation: CudaPass, active: frozenset[str]) -> Macro:
        if active:
            if name in active or len(active) > _DEEP:
                return Unknown("it is defined by itself")
            return self._worked_out(name, compilation, active)
        key = (name, compilation)
        if key not in self._meant:
            before, self.named = self.named, False
            self._meant[key] = (self._worked_out(name, compilation, active), self.named)
            self.named = before
        found, named = self._meant[key]
        self.named = self.named or named
        return found

    def _worked_out(self, name: str, compilation: CudaPass, active: frozenset[str]) -> Macro:
        cases = self._state.get(name)
        if cases is None:
            return self._before(name, compilation)
        defined: Bool = False
        values: list[tuple[Value, Bool]] = []
        calls: list[tuple[_Definition, Bool]] = []
        for case in cases:
            when = case.when[compilation]
            if when is False:
                continue
            if case.definition is _BEFORE:
                was = settled(name, self._before(name, compilation))
                defined = or_(defined, and_(when, was.defined))
                values.append((was.value, when))
            elif isinstance(case.definition, _Definition):
                defined = or_(defined, when)
                inner = self._lookup(compilation, active | {name})
                values.append((_worth(case.definition, inner), when))
                if case.definition.parameters is not None:
                    calls.append((case.definition, when))
            else:
                values.append((value_of(Number(0), lambda _: Free()), when))
        if not calls or len(calls) < len(values):
            return Settled(defined, one_of(values))
        inner = self._lookup(compilation, active | {name})
        return Settled(
            defined,
            one_of(values),
            lambda given: one_of((_called(d, given, inner), when) for d, when in calls),
        )

    def _before(self, name: str, compilation: CudaPass) -> Macro:
        if is_target_macro(name):
            return NOTHING_HIDDEN.meaning(name, compilation)
        if name in self._state:
            # Whoever compiles the file gives it, or not, and that is the same in every pass.
            return Free()
        found = self.meanings.meaning(name, compilation)
        if not isinstance(found, Unknown):
            return found
        if (other := self.outside.meaning(name, compilation)) is not None:
            self.named = self.named or self.outside.named
            return other
        if (other := named_for_the_target(name, compilation)) is not None:
            self.named = True
            return other
        return found


def settle(scan: Scan, meanings: Macros, outside: Outside) -> Settling | None:
    """Follow a file's macros; None if none of them is worth it."""
    if not meanings.hidden and not any(
        mentions(branch, _may_be_settled) for branch in scan.branches.values()
    ):
        return None
    settling = Settling(scan, meanings, outside)
    settling.run()
    return settling


def _changed(directive: Directive) -> str:
    """The macro that a directive defines, or lets go of; empty if it does neither."""
    if directive.keyword not in ("define", "undef") or not directive.body:
        return ""
    return directive.body[0].text


def _may_be_settled(name: str) -> bool:
    return speaks_of_architecture(name) and not is_target_macro(name)


def _around(branch: Branch | None) -> Iterator[Branch]:
    while branch is not None:
        yield branch
        yield from branch.earlier
        branch = branch.parent


def _definition(directive: Directive) -> _Definition:
    name, *rest = directive.body
    if not rest or rest[0].text != "(" or rest[0].start != name.end:
        return _Definition(directive, None, tuple(rest))
    texts = [token.text for token in rest]
    close = texts.index(")") if ")" in texts else len(texts)
    return _Definition(
        directive,
        tuple(text for text in texts[1:close] if text != ","),
        tuple(rest[close + 1 :]),
    )


def _worth(definition: _Definition, lookup: Callable[[str], Macro]) -> Value:
    """What a macro without arguments is worth."""
    name = definition.directive.body[0].text
    if definition.parameters is not None:
        return unread(name, "it takes arguments")
    return _read(name, definition, definition.body, lookup)


def _called(
    definition: _Definition, arguments: tuple[str, ...], lookup: Callable[[str], Macro]
) -> Value:
    """What a macro is worth with arguments."""
    name = definition.directive.body[0].text + "".join(arguments)
    # Only single tokens: what an argument of several means depends on what is around it.
    given = [text for text in arguments[1:-1] if text != ","]
    parameters = definition.parameters or ()
    if len(given) != len(parameters) or len(arguments) != max(2, 2 * len(given) + 1):
        return unread(name, "its arguments are not read")
    texts = dict(zip(parameters, given, strict=True))
    body = tuple(
        token._replace(text=texts[token.text], kind=_kind(texts[token.text]))
        if token.text in texts
        else token
        for token in definition.body
    )
    return _read(name, definition, body, lookup)


def _kind(text: str) -> str:
    return "number" if text[0].isdigit() else "name" if text[0].isidentifier() else "operator"


def _read(
    name: str, definition: _Definition, body: Sequence[Token], lookup: Callable[[str], Macro]
) -> Value:
    """What a macro's text is worth, where it means the same wherever it is put."""
    line = f"line {definition.directive.line} defines it"
    if not body:
        return unread(name, f"{line} as nothing")
    try:
        expression = parse_tokens(body, body[-1].end)
    except ConditionError as error:
        return unread(name, f"{line} as what is no condition: {error}")
    if not isinstance(expression, Group | Number | Name | Defined | Call):
        return unread(name, f"{line} as what means another thing beside other operators")
    return value_of(expression, lookup)
