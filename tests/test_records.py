"""Records do what the classes of ``dataclasses`` do, and nothing is compiled for them."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Mapping
from typing import Any

import pytest

from gatepatch import records
from gatepatch.arch import Arch
from gatepatch.edits import ByteEdit
from gatepatch.records import dataclass, field, names_of
from gatepatch.spec import GateEdit, Text
from gatepatch.state import State


@dataclass(frozen=True, slots=True, kw_only=True)
class Ours:
    """Named."""

    name: str
    count: int = 1
    more: Mapping[str, int] = field(default_factory=dict)
    note: str = field(default="", compare=False, repr=False)

    def __str__(self) -> str:
        return self.name


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Theirs:
    """Named."""

    name: str
    count: int = 1
    more: Mapping[str, int] = dataclasses.field(default_factory=dict)
    note: str = dataclasses.field(default="", compare=False, repr=False)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, order=True)
class OurPlace:
    """Ordered."""

    line: int
    column: int = 0


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class TheirPlace:
    """Ordered."""

    line: int
    column: int = 0


NAMED = pytest.mark.parametrize("kind", [Ours, Theirs])
PLACE = pytest.mark.parametrize("kind", [OurPlace, TheirPlace])


@NAMED
def test_fields_are_given_by_name_and_have_defaults(kind: Any) -> None:
    made = kind(name="a")
    assert (made.name, made.count, made.more, made.note) == ("a", 1, {}, "")
    assert kind(note="b", name="a", count=2).count == 2
    assert made.more is not kind(name="a").more


@NAMED
@pytest.mark.parametrize(
    "given",
    [{}, {"count": 1}, {"name": "a", "other": 1}, {"name": "", "count": 1, "more": {}, "x": ""}],
    ids=str,
)
def test_what_is_missing_or_unknown_is_a_type_error(kind: Any, given: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        kind(**given)


@NAMED
def test_nothing_is_given_by_place(kind: Any) -> None:
    with pytest.raises(TypeError):
        kind("a")


@PLACE
def test_a_place_is_given_by_place_or_by_name(kind: Any) -> None:
    assert kind(1, 2) == kind(1, column=2) == kind(line=1, column=2)
    assert kind(1) == kind(1, 0)


@PLACE
@pytest.mark.parametrize("given", [(), (1, 2, 3)], ids=str)
def test_too_few_and_too_many_are_refused(kind: Any, given: tuple[int, ...]) -> None:
    with pytest.raises((TypeError, ValueError)):
        kind(*given)
    with pytest.raises(TypeError):
        kind(1, line=1)


@NAMED
def test_equal_values_are_equal_and_have_one_hash(kind: Any) -> None:
    first, second = kind(name="a", more=(), note="x"), kind(name="a", more=(), note="y")
    assert first == second
    assert hash(first) == hash(second)
    assert first != kind(name="b", more=())


def test_another_class_is_never_equal() -> None:
    text: object = Text(where="", find="", replace="", unproved="")
    assert text != GateEdit(where="", action="open")
    assert OurPlace(1, 0).__eq__((1, 0)) is NotImplemented


@PLACE
def test_places_are_ordered_by_their_fields(kind: Any) -> None:
    assert sorted([kind(2, 0), kind(1, 9), kind(1, 3)]) == [kind(1, 3), kind(1, 9), kind(2, 0)]
    assert kind(1, 1) <= kind(1, 1) < kind(1, 2) > kind(1, 1) >= kind(1, 1)
    with pytest.raises(TypeError):
        assert kind(1, 1) < (1, 2)


@NAMED
def test_nothing_can_be_changed_or_added(kind: Any) -> None:
    made = kind(name="a")
    for name in ("name", "other"):
        with pytest.raises((dataclasses.FrozenInstanceError, TypeError)):
            setattr(made, name, 1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        del made.name
    assert not hasattr(made, "__dict__")


@NAMED
def test_its_text_names_every_field_that_is_to_be_seen(kind: Any) -> None:
    assert repr(kind(name="a", note="b")) == f"{kind.__name__}(name='a', count=1, more={{}})"
    assert str(kind(name="a")) == "a"


@pytest.mark.parametrize(
    "value",
    [Ours(name="a", note="b"), OurPlace(1, 2), ByteEdit(3, b"old", b"new"), Arch(12, 0)],
    ids=repr,
)
def test_copies_and_pickles_are_equal(value: object) -> None:
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(value, protocol)) == value
    assert copy.deepcopy(value) == copy.copy(value) == value


def test_positional_records_match_by_place() -> None:
    match OurPlace(1, 2):
        case OurPlace(line, column):
            assert (line, column) == (1, 2)
    assert not Ours.__match_args__


@pytest.mark.parametrize("tools", [records, dataclasses])
def test_both_sets_of_functions_take_them(tools: Any) -> None:
    value = Ours(name="a", more={"b": 1})
    assert tools.asdict(value) == {"name": "a", "count": 1, "more": {"b": 1}, "note": ""}
    assert tools.replace(value, name="c", count=3) == Ours(name="c", count=3, more={"b": 1})
    assert tools.asdict(State())["sets"] == {}
    nested = Ours(name="a", more={"b": OurPlace(1)})  # type: ignore[dict-item]
    assert tools.asdict(nested)["more"] == {"b": {"line": 1, "column": 0}}


def test_the_original_functions_know_them() -> None:
    assert dataclasses.is_dataclass(Ours)
    assert [each.name for each in dataclasses.fields(Ours)] == list(names_of(Ours(name="a")))


def test_names_are_known_of_records_and_dataclasses_only() -> None:
    assert names_of(OurPlace(1)) == names_of(TheirPlace(1)) == ("line", "column")
    assert names_of(OurPlace) == names_of("text") == names_of(1) == ()


def test_what_is_no_record_is_refused() -> None:
    make: Any = records.dataclass
    for options in ({"frozen": False, "slots": True}, {"frozen": True, "slots": False}):
        with pytest.raises(TypeError, match="what is no record is for dataclasses"):
            make(**options)
