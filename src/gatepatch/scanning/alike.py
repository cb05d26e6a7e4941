"""Architectures that are alike to a condition: what is asked of one is asked of all of them.

An expression is worked out on one architecture whose numbers keep count: each answer that they
give leaves out the architectures that would have given another. On those that are left the
expression is worked out in the very same way, to the same value.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
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
        return Arch(_number(majors, index, self), _number(minors, index, self))

    def holds(self, index: int, archs: frozenset[Arch]) -> bool:
        """Whether an architecture is one of some.

        Args:
            index: Which one.
            archs: The others.
        """
        answer, left = _answer(operator.contains, archs, self._archs, index)
        self.left &= left
        return bool(answer)

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


@lru_cache(maxsize=_TOLD)
def _answer(action: _Operation, other: Any, numbers: Sequence[Any], index: int) -> tuple[Any, int]:
    """What an action gives for one number, and the bits of those for which it gives the same."""
    if other is None:
        answers = [action(number) for number in numbers]
    else:
        answers = [action(other, number) for number in numbers]
    own = answers[index]
    return own, sum(1 << place for place, answer in enumerate(answers) if answer == own)


@lru_cache(maxsize=_TOLD)
def _compared(action: _Operation, numbers: Numbers, others: Any, index: int) -> tuple[bool, int]:
    several = others if isinstance(others, tuple) else (others,) * len(numbers)
    answers = tuple(map(action, numbers, several))
    own = answers[index]
    return own, sum(1 << place for place, answer in enumerate(answers) if answer is own)


@lru_cache(maxsize=_TOLD, typed=True)
def _combined(action: _Operation, numbers: Any, others: Any) -> Numbers | None:
    count = len(numbers if isinstance(numbers, tuple) else others)
    first, second = (
        some if isinstance(some, tuple) else (some,) * count for some in (numbers, others)
    )
    try:
        return tuple(map(action, first, second))
    except (ArithmeticError, ValueError):
        return None


def _numbers(other: Any) -> Any:
    """A number, or those of one that keeps count; None for what is no number."""
    if type(other) is _Number:
        return other.numbers
    return other if isinstance(other, int | float) else None


def _comparison(action: _Operation) -> Callable[[_Number, object], Any]:
    def method(self: _Number, other: object) -> Any:
        others = _numbers(other)
        if others is None:
            return NotImplemented
        answer, left = _compared(action, self.numbers, others, self.index)
        self.alike.left &= left
        return answer

    return method


def _operation(action: _Operation, *, turned: bool = False) -> Callable[[_Number, object], Any]:
    def method(self: _Number, other: object) -> Any:
        others = _numbers(other)
        if others is None:
            return NotImplemented
        sides = (others, self.numbers) if turned else (self.numbers, others)
        numbers = _combined(action, *sides)
        if numbers is not None:
            return _Number(numbers, self.index, self.alike)
        bare = [one._told() if type(one) is _Number else one for one in (self, other)]
        return action(*reversed(bare)) if turned else action(*bare)

    return method


def _sign(action: _Operation) -> Callable[[_Number], Any]:
    def method(self: _Number) -> Any:
        return _Number(tuple(map(action, self.numbers)), self.index, self.alike)

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

    def _told(self) -> Any:
        """The number itself, once it is laid open."""
        return self._answer(operator.pos)

    def _answer(self, action: _Operation) -> Any:
        answer, left = _answer(action, None, self.numbers, self.index)
        self.alike.left &= left
        return answer

    def __bool__(self) -> bool:
        return bool(self._answer(operator.truth))

    def __hash__(self) -> int:
        return hash(self._told())

    def __repr__(self) -> str:
        return repr(self._told())

    def __format__(self, spec: str) -> str:
        return format(self._told(), spec)

    def __index__(self) -> int:
        return operator.index(self._told())

    def __int__(self) -> int:
        return int(self._told())

    def __float__(self) -> float:
        return float(self._told())

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


def _number(numbers: Numbers, index: int, alike: Alike) -> Any:
    return _Number(numbers, index, alike)
