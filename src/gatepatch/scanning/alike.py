"""Architectures that are alike to a condition: what is asked of one is asked of all of them.

An expression is worked out on one architecture whose numbers keep count: each answer that they
give leaves out the architectures that would have given another. On those that are left the
expression is worked out in the very same way, to the same value.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import repeat
from typing import Any, TypeAlias

from gatepatch.arch import Arch

Numbers: TypeAlias = "tuple[Any, ...]"
"""One number of each architecture."""

_Operation: TypeAlias = "Callable[..., Any]"

_TOLD = 1 << 14
"""How many answers are kept: code asks the same few questions."""


class Alike:
    """The architectures, and those among them that have given the same answers so far.

    Args:
        archs: The architectures.
    """

    def __init__(self, archs: Sequence[Arch]):
        self._archs = tuple(archs)
        self.every = (1 << len(self._archs)) - 1
        self.left = self.every
        """A bit for each."""

    def watched(self, index: int) -> Arch:
        """One of the architectures, whose numbers keep count.

        Args:
            index: Which one.
        """
        majors = tuple(arch.major for arch in self._archs)
        minors = tuple(arch.minor for arch in self._archs)
        major: Any = _Number(majors, index, self)
        minor: Any = _Number(minors, index, self)
        return Arch(major, minor)

    def holds(self, index: int, archs: frozenset[Arch]) -> bool:
        """Whether an architecture is one of some.

        Args:
            index: Which one.
            archs: The others.
        """
        answers = _each(operator.contains, archs, self._archs)
        self.left &= _same(answers, index)
        return bool(answers[index])

    def forget(self) -> None:
        """Take all of them for alike."""
        self.left = self.every

    def archs(self) -> Iterator[Arch]:
        """Those that have given the same answers since then."""
        return (arch for place, arch in enumerate(self._archs) if self.left >> place & 1)


def found_in(table: Mapping[Any, Any], key: Any, default: Any = None) -> Any:
    """What a table has under a key: asked for one by one, since a hash lays a number open.

    Args:
        table: The table.
        key: The key, or a tuple with a number that keeps count.
        default: What is returned where it has nothing.
    """
    return next((value for one, value in table.items() if one == key), default)


@lru_cache(maxsize=_TOLD, typed=True)
def _each(action: _Operation, *sides: Any) -> Numbers:
    """What an action gives on each architecture; a side is one thing, or a tuple of one for each."""
    return tuple(
        map(action, *(side if isinstance(side, tuple) else repeat(side) for side in sides))
    )


@lru_cache(maxsize=_TOLD)
def _same(answers: Numbers, index: int) -> int:
    """The bits of the architectures that give the same answer as one of them."""
    own = answers[index]
    return sum(1 << place for place, answer in enumerate(answers) if answer == own)


def _numbers(other: Any) -> Any:
    """A number, or those of one that keeps count; None for what is no number."""
    if type(other) is _Number:
        return other.numbers
    return other if isinstance(other, int | float) else None


def _comparison(action: _Operation) -> Callable[[_Number, object], Any]:
    def method(self: _Number, other: object) -> Any:
        others = _numbers(other)
        return NotImplemented if others is None else self.told(_each(action, self.numbers, others))

    return method


def _operation(action: _Operation, *, turned: bool = False) -> Callable[[_Number, object], Any]:
    def method(self: _Number, other: object) -> Any:
        others = _numbers(other)
        if others is None:
            return NotImplemented
        sides = (others, self.numbers) if turned else (self.numbers, others)
        try:
            return _Number(_each(action, *sides), self.index, self.alike)
        except (ArithmeticError, ValueError):  # on one of them
            bare = [one._bare() if type(one) is _Number else one for one in (self, other)]
            return action(*reversed(bare)) if turned else action(*bare)

    return method


def _sign(action: _Operation) -> Callable[[_Number], Any]:
    def method(self: _Number) -> Any:
        return _Number(_each(action, self.numbers), self.index, self.alike)

    return method


class _Number:
    """A number of an architecture, which every operation goes through.

    It says to be an ``int``, which code asks for, and is none: C code would read the bare number
    of a subclass unseen.

    Args:
        numbers: The number on every architecture.
        index: Which of them is this one.
        alike: What keeps count.
    """

    __slots__ = ("alike", "index", "numbers")

    def __init__(self, numbers: Numbers, index: int, alike: Alike):
        self.numbers = numbers
        self.index = index
        self.alike = alike

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return int

    def told(self, answers: Numbers) -> Any:
        """The answer of this one, which leaves out those that have another."""
        self.alike.left &= _same(answers, self.index)
        return answers[self.index]

    def _bare(self) -> Any:
        return self.told(self.numbers)

    def __bool__(self) -> bool:
        return bool(self.told(_each(bool, self.numbers)))

    def __hash__(self) -> int:
        return hash(self._bare())

    def __repr__(self) -> str:
        return repr(self._bare())

    def __format__(self, spec: str) -> str:
        return format(self._bare(), spec)

    def __index__(self) -> int:
        return operator.index(self._bare())

    def __int__(self) -> int:
        return int(self._bare())

    def __float__(self) -> float:
        return float(self._bare())

    __eq__ = _comparison(operator.eq)
    __ne__ = _comparison(operator.ne)
    __lt__ = _comparison(operator.lt)
    __le__ = _comparison(operator.le)
    __gt__ = _comparison(operator.gt)
    __ge__ = _comparison(operator.ge)
    __add__ = _operation(operator.add)
    __radd__ = _operation(operator.add, turned=True)
    __sub__ = _operation(operator.sub)
    __rsub__ = _operation(operator.sub, turned=True)
    __mul__ = _operation(operator.mul)
    __rmul__ = _operation(operator.mul, turned=True)
    __floordiv__ = _operation(operator.floordiv)
    __rfloordiv__ = _operation(operator.floordiv, turned=True)
    __truediv__ = _operation(operator.truediv)
    __rtruediv__ = _operation(operator.truediv, turned=True)
    __mod__ = _operation(operator.mod)
    __rmod__ = _operation(operator.mod, turned=True)
    __lshift__ = _operation(operator.lshift)
    __rlshift__ = _operation(operator.lshift, turned=True)
    __rshift__ = _operation(operator.rshift)
    __rrshift__ = _operation(operator.rshift, turned=True)
    __and__ = _operation(operator.and_)
    __rand__ = _operation(operator.and_, turned=True)
    __or__ = _operation(operator.or_)
    __ror__ = _operation(operator.or_, turned=True)
    __neg__ = _sign(operator.neg)
    __pos__ = _sign(operator.pos)
    __abs__ = _sign(operator.abs)
