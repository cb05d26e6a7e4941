"""Records: what ``dataclasses`` makes, without the code that it writes and compiles.

It compiles up to ten functions for each class, which takes half a millisecond, and what ``apply``
loads has sixty of them. Here classes share their functions, for a thirtieth of that. To a type
checker these are the originals, and they mean the same; only what records need is there: they are
frozen and have slots, and no base class. What is made works with ``dataclasses`` as well.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

_NONE: Any = object()
_ORDER = ("__lt__", "__le__", "__gt__", "__ge__")


class _Field:
    """A field's default, and where it does not count."""

    def __init__(
        self,
        *,
        default: Any = _NONE,
        default_factory: Callable[[], Any] | None = None,
        compare: bool = True,
        repr: bool = True,  # noqa: A002, as the original calls it
    ):
        self.default = default
        self.default_factory = default_factory
        self.compare = compare
        self.repr = repr


class _Originals:
    """``__dataclass_fields__``, made when ``dataclasses`` first asks for them."""

    def __init__(self, make: Callable[[], Any]):
        self.make = make

    def __get__(self, instance: object, owner: type) -> Any:
        found = self.make()
        setattr(owner, "__dataclass_fields__", found)  # noqa: B010, a type has no such attribute
        return found


def _dataclass(
    *, frozen: bool, slots: bool, kw_only: bool = False, order: bool = False
) -> Callable[[type], type]:
    if not (frozen and slots):
        raise TypeError("what is no record is for dataclasses")
    return lambda cls: _record(cls, kw_only, order)


def _record(cls: type, kw_only: bool, order: bool) -> type:
    names = tuple(cls.__annotations__)
    own = {k: v for k, v in cls.__dict__.items() if k not in ("__dict__", "__weakref__")}
    given = {name: own.pop(name, _NONE) for name in names}
    fields = {n: v if isinstance(v, _Field) else _Field(default=v) for n, v in given.items()}
    made = type(cls)(cls.__name__, cls.__bases__, {**own, "__slots__": names})
    puts = [(name, made.__dict__[name].__set__) for name in names]
    methods = {
        "__record__": names,
        "__match_args__": () if kw_only else names,
        "__dataclass_fields__": _Originals(lambda: _originals(made, fields, kw_only)),
        "__init__": _initialiser(made, fields, puts, kw_only),
        **_comparisons(tuple(n for n in names if fields[n].compare), order),
        **_pickling(names, puts),
        "__repr__": _representation(tuple(n for n in names if fields[n].repr)),
        "__setattr__": _frozen,
        "__delattr__": _frozen,
    }
    for name, method in methods.items():
        if name not in own:
            setattr(made, name, method)
    return made


def _initialiser(
    cls: type,
    fields: Mapping[str, _Field],
    puts: list[tuple[str, Callable[[object, object], None]]],
    kw_only: bool,
) -> Callable[..., None]:
    count = len(fields)
    defaults = {n: f.default for n, f in fields.items() if f.default is not _NONE}
    factories = {n: f.default_factory for n, f in fields.items() if f.default_factory}

    def by_name(self: object, **values: object) -> None:
        if len(values) < count:
            values = {**defaults, **{n: make() for n, make in factories.items()}, **values}
        try:
            for name, put in puts:
                put(self, values[name])
        except KeyError:
            missing = ", ".join(repr(name) for name in fields if name not in values)
            raise TypeError(f"{cls.__qualname__}() misses {missing}") from None
        if len(values) > count:
            unknown = ", ".join(repr(name) for name in values if name not in fields)
            raise TypeError(f"{cls.__qualname__}() does not know {unknown}")

    def by_place(self: object, *given: object, **values: object) -> None:
        if len(given) < count or values:
            by_name(self, **dict(zip(fields, given, strict=False)), **values)
        else:
            for (_, put), value in zip(puts, given, strict=True):
                put(self, value)

    return by_name if kw_only else by_place


def _comparisons(names: tuple[str, ...], order: bool) -> dict[str, Callable[..., Any]]:
    compared = operator.attrgetter(*names)

    def comparison(name: str) -> Callable[[object, object], Any]:
        compare = getattr(operator, name)

        def method(self: object, other: object) -> Any:
            if other.__class__ is not self.__class__:
                return NotImplemented
            return compare(compared(self), compared(other))

        return method

    found = {name: comparison(name) for name in ("__eq__", *(_ORDER if order else ()))}
    return {**found, "__hash__": lambda self: hash(compared(self))}


def _pickling(
    names: tuple[str, ...], puts: list[tuple[str, Callable[[object, object], None]]]
) -> dict[str, Callable[..., Any]]:
    def put_all(self: object, values: list[object]) -> None:
        for (_, put), value in zip(puts, values, strict=True):
            put(self, value)

    return {
        "__getstate__": lambda self: [getattr(self, name) for name in names],
        "__setstate__": put_all,
    }


def _representation(names: tuple[str, ...]) -> Callable[[object], str]:
    def representation(self: object) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{type(self).__qualname__}({shown})"

    return representation


def _frozen(self: object, name: str, value: object = None) -> None:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _originals(cls: type, fields: Mapping[str, _Field], kw_only: bool) -> Any:
    import dataclasses

    def original(field: _Field) -> Any:
        if field.default_factory is not None:
            return dataclasses.field(default_factory=field.default_factory)
        default = dataclasses.MISSING if field.default is _NONE else field.default
        return dataclasses.field(default=default, compare=field.compare, repr=field.repr)

    twin = dataclasses.make_dataclass(
        cls.__name__,
        [(n, cls.__annotations__[n], original(f)) for n, f in fields.items()],
        kw_only=kw_only,
    )
    return twin.__dict__["__dataclass_fields__"]


def names_of(value: object) -> tuple[str, ...]:
    """The names of a record's fields, or of any dataclass's; none of what is neither."""
    kind = type(value)
    own: tuple[str, ...] | None = kind.__dict__.get("__record__")
    return tuple(getattr(kind, "__dataclass_fields__", ())) if own is None else own


def _replace(value: Any, /, **changes: object) -> Any:
    return type(value)(**{n: getattr(value, n) for n in names_of(value)} | changes)


def _asdict(value: object) -> dict[str, Any]:
    return {name: _plain(getattr(value, name)) for name in names_of(value)}


def _plain(value: Any) -> Any:
    if names_of(value):
        return _asdict(value)
    if isinstance(value, tuple | list):
        return type(value)(map(_plain, value))
    return {k: _plain(v) for k, v in value.items()} if isinstance(value, dict) else value


if TYPE_CHECKING:
    from dataclasses import asdict, dataclass, field, replace
else:
    asdict, dataclass, field, replace = _asdict, _dataclass, _Field, _replace

__all__ = ["asdict", "dataclass", "field", "names_of", "replace"]
