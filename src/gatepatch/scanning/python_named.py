"""What a value that is not followed is by its name: an architecture, or a part or predicate of one."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from gatepatch.arch import Arch
from gatepatch.boolean import Bool, atom, not_
from gatepatch.gates import python_calls
from gatepatch.gates.python_operations import COMPARE
from gatepatch.gates.python_scope import hides
from gatepatch.gates.python_values import (
    Const,
    Frame,
    Held,
    Opaque,
    Value,
    from_bool,
    of_device,
    text_of,
)
from gatepatch.scanning import names
from gatepatch.scanning.python_free import Free, is_own
from gatepatch.scanning.python_givens import LONG
from gatepatch.scanning.python_mappings import is_cache, is_something, keys_of
from gatepatch.scanning.python_tuples import membership, same_parts
from gatepatch.scanning.python_words import (
    TEXT_METHODS,
    is_of_models,
    is_other_word,
    is_permission,
    is_targets,
    spelt_like,
    targets,
)
from gatepatch.scanning.speaking import is_support, says

CAPABILITY = frozenset(
    {"get_device_capability", "get_compute_capability", "get_cuda_capability", "device_capability"}
)
"""Functions that return a pair in every package seen: PyTorch's own, and what wraps it."""

_ENTRY = "['device_capability']"
"""How an entry ends in which a function tells what the device is."""

_MEMBER = re.compile(r"(?:\w+\.)*\w*[Aa]rch\w*\.[sS][mM]_?(\d{2,3})([af]?)")

_FAMILY = 2
"""The place of ``f`` among the suffixes."""

_SHORT = 30
"""How many characters a text may have that is worked on."""

_KEYED = 3
"""How many parts a key has at least."""

_KEY = re.compile(r"\.(?:\w+_)?key$")

_UNTOLD = "its meaning is not known"
"""How a reason ends that speaks of a name alone."""


def member_of(value: Value) -> tuple[int, int] | None:
    """The number and the suffix's place of an enumeration's member; None if it is none."""
    if not isinstance(value, Opaque) or (found := _MEMBER.fullmatch(value.text)) is None:
        return None
    return int(found[1]), ("", "a", "f").index(found[2])


def _members(text: str) -> list[tuple[int, int]]:
    """The members of an enumeration that a list is made of; none where something else is in it."""
    found = []
    for part in text.strip("()[]{}").split(","):
        # A text may be that of a whole table: most are given up at their first part.
        if part.strip():
            member = member_of(Opaque(part.strip()))
            if member is None:
                return []
            found.append(member)
    return found


def _is_beside(op: ast.cmpop, left: Value, right: Value) -> bool:
    """Whether a comparison is of something else: a model's kind, what was compiled so far."""
    if isinstance(op, ast.In | ast.NotIn):
        if right in (Const({}), Const(frozenset()), Const([])):
            return True  # filled as the program runs
        if isinstance(right, Opaque) and is_of_models(names.last_name(right.text)):
            return True
    for one, other in ((left, right), (right, left)):
        if isinstance(one, Opaque) and isinstance(other, Const) and is_other_word(other.value):
            name = names.last_name(_bare(one.text))
            if names.is_number(name) or names.is_major(name):
                return True
    return False


def _is_made_for(left: Value, right: Value) -> bool:
    """Whether what a plan was made for is compared with what the device is: it depends on the plan."""
    for one, other in ((left, right), (right, left)):
        if isinstance(one, Opaque) and one.unknown and isinstance(other, Const) and other.device:
            owner, _, name = one.text.rpartition(".")
            if names.is_number(name) and not owner.startswith("self"):
                return True
    return False


def number_of(value: Value) -> Arch | None:
    """The architecture that a constant such as 100 or ``(10, 0)`` is."""
    match value:
        case Const(value=(int(major), int(minor))):
            return Arch(major, minor)
        case Const(value=int(number)) if 50 <= number < 200:
            return Arch(*divmod(number, 10))
    return None


def _bare(text: str) -> str:
    """A text without ``int(…)``, ``tuple(…)`` or the like around it."""
    while found := re.fullmatch(r"(?:int|str|tuple|list)\((.*)\)", text):
        text = found[1]
    return text


def _is_minor(text: str) -> bool:
    """Whether a text is that of a minor, or of the second part of a capability."""
    whole = text.removesuffix("[1]")
    named = names.last_name(whole)
    return names.is_minor(named) or (whole != text and names.is_number(named))


def is_named(value: Value) -> bool:
    """Whether a value that is not followed is an architecture by its name."""
    if not isinstance(value, Opaque) or not value.unknown:
        return False
    return names.is_number(names.last_name(_bare(value.text)))


def is_made_of(value: Value) -> bool:
    """Whether a value is a text that is made of an architecture's name and of others."""
    if not isinstance(value, Opaque) or not value.text.startswith(("f'", 'f"')):
        return False
    return value.unknown.endswith("in a way that is not followed")


def _is_empty(value: Value) -> bool:
    """Whether nothing is in a value, now and later."""
    if not isinstance(value, Const) or value.value:
        return False
    return value.device or isinstance(value.value, tuple)


def _is_of_keys(left: Value, right: Value) -> bool:
    """Whether what a record was kept under is compared with what it would be kept under now."""
    for one, other in ((left, right), (right, left)):
        match one, other:
            case Opaque(text=text, unknown=""), Opaque(held=Held(items=Mapping() as parts)) if len(
                parts
            ) >= _KEYED and _KEY.search(text):
                return not any(isinstance(p, Const) and p.device for p in parts.values())
    return False


class Named(Free):
    """An evaluator that takes what it cannot follow for what its name says.

    ``named`` is set where that was done.
    """

    named = False

    def is_one_of(self, archs: frozenset[Arch]) -> bool:
        """Whether the architecture is one of some."""
        return self.arch in archs

    def _told(self, node: ast.Call, frame: Frame) -> Value | None:
        """What a method of an architecture's name gives; None for another call."""
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="re"), attr="sub"), args=[_, _, _], keywords=[]
            ):
                return self._substituted([self.value(arg, frame) for arg in node.args])
            case ast.Call(func=ast.Attribute(value=base, attr=method), keywords=[]) if (
                method in TEXT_METHODS
            ):
                args = [self.value(arg, frame) for arg in node.args]
                text = self._text(self.value(base, frame), args)
                return python_calls.method(self, text, method, args) if text else None
        return None

    def _substituted(self, args: Sequence[Value]) -> Value | None:
        """A short text with a pattern replaced: the suffix of an architecture taken off."""
        match args:
            case [Const(value=str(old)), Const(value=str(new)), Const(value=str(text))] if (
                len(old) <= _SHORT and len(text) <= _SHORT
            ):
                try:
                    return Const(re.sub(old, new, text), of_device(args[2]))
                except re.error:
                    return None
        return None

    def _text(self, value: Value, samples: Sequence[Value] = ()) -> Const | None:
        """The text that a value is that is named as an architecture; None if it is not."""
        if not is_named(value):
            return self._minor_text(value)
        texts = [one.value for one in samples if isinstance(one, Const)]
        known = [text for text in texts if isinstance(text, str)]
        if any("gfx" in text for text in known):
            return None
        self.named = True
        self.asked = True
        return Const(spelt_like(self.arch, known), device=True)

    def _minor_text(self, value: Value) -> Const | None:
        """The text that a value is that is named as a minor: ``0a``, as compile targets have it."""
        if not isinstance(value, Opaque) or not value.unknown:
            return None
        if not names.is_minor(names.last_name(value.text)):
            return None
        self.named = self.asked = True
        return Const(f"{self.arch.minor}{'a' if self.arch.major >= 9 else ''}", device=True)

    def iterated(self, value: Value) -> Value:
        """What a comprehension goes over: the pair that a capability is, if it is named so."""
        if is_named(value):
            return self._by_name((self.arch.major, self.arch.minor))
        return value

    def _predicated(self, value: Value) -> Value:
        """A predicate that is not followed, by its name; and a set of compile targets."""
        if not isinstance(value, Opaque):
            return value
        if value.unknown and not member_of(value):
            name = names.last_name(value.text)
            if name in CAPABILITY and value.text.endswith(")"):
                return self.device((self.arch.major, self.arch.minor))
            archs = names.predicate(name)
            if archs is not None:
                return self._by_name(self.is_one_of(archs))
            if is_targets(name):
                return self._by_name(targets(self.arch))
            own = hides(name) and value.unknown.endswith(_UNTOLD)
            if own and (is_permission(name) or not says(name, value.text)):
                return Opaque(value.text)
        elif is_support(names.last_name(value.text)):
            if value.held is None:
                return Opaque(value.text, f"{value.text} may test the architecture, and {_UNTOLD}")
            if not re.search(
                r"\(\d", value.text
            ):  # of the device, and not of a number that is given
                self.asked = True
                return replace(value, text=f"{value.text} on {self.arch}")
        return value

    def _by_name(self, constant: Any) -> Value:
        self.named = True
        return self.device(constant)

    def _pair(self, op: ast.cmpop, sides: Sequence[Value]) -> Value:
        left, right = sides[0], keys_of(sides[1])
        listed, asks = isinstance(op, ast.In | ast.NotIn), isinstance(op, ast.Is | ast.IsNot)
        if listed and is_cache(right):
            return from_bool(
                atom(f"{text_of(left)} {COMPARE[type(op)][0]} {text_of(right)}"[:LONG])
            )
        if listed and is_made_of(left) and isinstance(right, Opaque) and not right.unknown:
            self.asked = (
                True  # what is delivered under a name, which says more than the architecture
            )
            return from_bool(atom(f"{text_of(left)} {COMPARE[type(op)][0]} {right.text}"[:LONG]))
        if listed and _is_empty(right):
            self.asked = self.asked or of_device(right)
            return Const(isinstance(op, ast.NotIn), of_device(right))
        if asks and is_something(left) and right == Const(None):
            return Const(isinstance(op, ast.IsNot), of_device(left))
        if asks and not isinstance(left, Const):
            # Whether it was asked for at all is no test of it; what it gave in a table is one.
            word = "is" if isinstance(op, ast.Is) else "is not"
            unknown = left.unknown if isinstance(left, Opaque) and right == Const(None) else ""
            unknown = unknown if unknown.endswith("in a way that is not followed") else ""
            return from_bool(atom(f"{text_of(left)} {word} {text_of(right)}", unknown=unknown))
        counts = isinstance(left, Opaque) and left.text.startswith(("int(", "len("))
        if counts and isinstance(op, ast.Eq | ast.NotEq) and right == Const(None, device=True):
            return self.device(isinstance(op, ast.NotEq))
        if listed and (found := membership(self, op, left, right)):
            return found
        if isinstance(op, ast.Eq | ast.NotEq) and _is_of_keys(left, right):
            return from_bool(
                atom(f"{text_of(left)} {COMPARE[type(op)][0]} {text_of(right)}"[:LONG])
            )
        if isinstance(op, ast.Eq | ast.NotEq) and (same := same_parts(self, op, left, right)):
            return same
        if _is_beside(op, left, right):
            return from_bool(
                atom(f"{text_of(left)} {COMPARE[type(op)][0]} {text_of(right)}"[:LONG])
            )
        if isinstance(left, Opaque) and not left.unknown and isinstance(right, Const):
            own = right.device and is_own(self.arch, right.value)
            if not own and not isinstance(right.value, str | tuple | None):
                # What hides no test of it, against what a table gives for it: known but for that.
                word = COMPARE[type(op)][0]
                return from_bool(atom(f"{left.text} {word} {text_of(right)}"[:LONG]))
        if (told := self.among(op, left, right)) is not None:
            return told
        if (ordered := self._enumerated(op, left, right)) is not None:
            return ordered
        if isinstance(op, ast.Eq | ast.NotEq) and _is_made_for(left, right):
            self.asked = True
            word = COMPARE[type(op)][0]
            shown = atom(f"{text_of(left)} {word} {text_of(right)}"[:LONG])
            return from_bool(shown, device=True)
        one, other = self.beside(left, right, op), self.beside(right, left, op)
        match one, other:
            case Const(device=True), Const(value=frozenset() | dict() as several) if listed:
                # One by one: a hash would lay the number open.
                other = Const(tuple(several), other.device)
        return super()._pair(op, [one, other])

    def _enumerated(self, op: ast.cmpop, left: Value, right: Value) -> Value | None:
        """A comparison with ``Arch.sm_100a``: members are in order, plain before ``a`` and ``f``.

        Equality looks at the number, but for a family's member: whether ``a`` was asked for is not known.
        """
        for one, other, mirrored in ((left, right, False), (right, left, True)):
            member = member_of(one)
            if member is None or not isinstance(other, Opaque):
                continue
            if not names.is_number(names.last_name(other.text)):
                continue
            sm, suffix = member
            if isinstance(op, ast.Eq | ast.NotEq):
                return self._same(op, other.text, [(sm, suffix)])
            mine, its = (self.arch.sm, 1), (sm, suffix)
            pair = (its, mine) if not mirrored else (mine, its)
            match op:
                case ast.Lt():
                    return self._by_name(pair[0] < pair[1])
                case ast.LtE():
                    return self._by_name(pair[0] <= pair[1])
                case ast.Gt():
                    return self._by_name(pair[0] > pair[1])
                case ast.GtE():
                    return self._by_name(pair[0] >= pair[1])
        if isinstance(op, ast.In | ast.NotIn) and isinstance(left, Opaque):
            members = (
                _members(text_of(right)) if names.is_number(names.last_name(left.text)) else []
            )
            if members:
                return self._same(op, left.text, members)
        return None

    def _same(self, op: ast.cmpop, text: str, members: Sequence[tuple[int, int]]) -> Value:
        """Whether an architecture is one of some members of an enumeration, or is not.

        It is one of a family's, ``sm_100f``, where the family was asked for.
        """
        suffixes = [suffix for sm, suffix in members if sm == self.arch.sm]
        if suffixes and min(suffixes) == _FAMILY:
            self.named = self.asked = True
            same: Bool = atom(f"{text} == sm_{self.arch.sm}f")
        else:
            same = bool(suffixes)
        is_positive = isinstance(op, ast.Eq | ast.In)
        if isinstance(same, bool):
            return self._by_name(same is is_positive)
        return from_bool(same if is_positive else not_(same), device=True)

    def beside(self, value: Value, other: Value, op: ast.cmpop) -> Value:
        """A value that is not followed, in the unit of the constant that it is compared with."""
        if not isinstance(value, Opaque) or not isinstance(other, Const):
            return value
        if not value.unknown and not names.is_target(value.text):
            return value
        if isinstance(op, ast.Eq | ast.NotEq) and other.device and "." in value.text:
            return value  # what a record was made for, against what the device is
        if isinstance(op, ast.In | ast.NotIn):
            if not isinstance(other.value, tuple | list | frozenset | dict) or not other.value:
                return value
            beside = list(other.value)
        else:
            beside = [other.value]
        text = value.text
        if value.held and value.held.items and not value.held.is_mapping:
            text = f"({', '.join(map(text_of, value.held.items.values()))})"
        found = self._named_value(text, beside)
        return value if found is None else self._by_name(found)

    def _named_value(self, text: str, beside: Sequence[Any]) -> Any:
        text = _bare(text)
        name = names.last_name(text)
        if not name and text.endswith(("[0]", "[1]")):
            inner = names.last_name(text[:-3])
            if inner and names.is_number(inner):
                return self.arch.major if text.endswith("[0]") else self.arch.minor
            return None
        if not name and text.endswith(_ENTRY):
            return (self.arch.major, self.arch.minor)
        if not name and text.startswith("(") and text.endswith(")"):
            bare = [_bare(part.strip()) for part in text[1:-1].split(",")]
            if [part[-3:] for part in bare] == ["[0]", "[1]"]:
                whole = {names.last_name(part[:-3]) for part in bare}
                if len(whole) == 1 and names.is_number(*whole):
                    return (self.arch.major, self.arch.minor)
            parts = [names.last_name(part) for part in bare]
            if len(parts) == 2 and names.is_major(parts[0]) and names.is_minor(parts[1]):
                return (self.arch.major, self.arch.minor)
            return None
        return names.value(name, self.arch, beside) if name else None

    def _binary(self, left: Value, right: Value, node: ast.BinOp, frame: Frame) -> Value:
        if isinstance(left, Opaque) and left.unknown:
            name = names.last_name(left.text)
            if isinstance(node.op, ast.FloorDiv | ast.Mod) and isinstance(right, Const):
                if right.value in (10, 100) and names.is_number(name):
                    whole = self.arch.sm if right.value == 10 else self.arch.cuda_arch
                    left = self._by_name(whole)
            elif isinstance(node.op, ast.Mult) and names.is_major(name):
                left = self._by_name(self.arch.major)
            elif isinstance(node.op, ast.Mult) and self._named_value(left.text, ()) is not None:
                left = self._by_name(self._named_value(left.text, ()))
        added = isinstance(node.op, ast.Add) and isinstance(left, Const)
        if added and isinstance(right, Opaque) and _is_minor(right.text):
            right = self._by_name(self.arch.minor)
        return super()._binary(left, right, node, frame)
