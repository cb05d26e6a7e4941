"""Attributes of ``self`` that are set from a test of the architecture."""

from __future__ import annotations

import textwrap

import pytest

from gatepatch.scanning.found import Found, admission
from gatepatch.scanning.python import PythonScanner

CAPABILITY = "torch.cuda.get_device_capability()"


def gates(text: str) -> list[Found]:
    """The gates of a module."""
    source = textwrap.dedent(text).encode()
    files = {"pkg/__init__.py": b""}
    found, _ = PythonScanner(files.get).scan("pkg/own.py", source)
    return found


def answers(found: Found) -> dict[str, str]:
    """What a gate does to three architectures."""
    every = admission(found.verdict, rejects=found.rejects).answers
    table = dict(zip(map(str, found.verdict.table), every, strict=True))
    return {arch: table[arch] for arch in ("9.0", "10.0", "12.0")}


ADMITS_10 = {"9.0": "shuts", "10.0": "admits", "12.0": "shuts"}


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(f"def __init__(self):\n    self.can = {CAPABILITY}[0] == 10", id="set"),
        pytest.param(f"def setup(self):\n    self.can: bool = {CAPABILITY}[0] == 10", id="typed"),
        pytest.param(
            f"def __init__(self):\n    major, _ = {CAPABILITY}\n    self.can = major == 10",
            id="from a local name",
        ),
        pytest.param(
            f"can = False\n\ndef setup(self):\n    self.can = {CAPABILITY}[0] == 10", id="declared"
        ),
        pytest.param(f"@property\ndef can(self):\n    return {CAPABILITY}[0] == 10", id="property"),
    ],
)
def test_an_attribute_is_what_its_class_sets_it_to(made: str) -> None:
    own = textwrap.indent(made, "    ")
    *_, found = gates(
        f"class A:\n{own}\n\n    def run(self):\n        if not self.can:\n            raise E\n"
    )
    assert found.text == "not self.can"
    assert answers(found) == ADMITS_10


def test_a_method_and_a_set_of_the_class_are_read() -> None:
    tests = gates(
        """
        class A:
            capabilities = {(10, 0), (10, 3)}

            def _can(self, x):
                return x and torch.cuda.get_device_capability()[0] == 10

            @staticmethod
            def _must(device):
                return torch.cuda.get_device_capability(device)[0] == 10

            def run(self, x, device):
                if torch.cuda.get_device_capability() not in self.capabilities:
                    raise ValueError
                if self._must(device):
                    return 1
                if self._can(x):
                    return 2
        """
    )
    known = {found.text: answers(found) for found in tests}
    assert known["torch.cuda.get_device_capability() not in self.capabilities"] == ADMITS_10
    assert known["self._must(device)"] == ADMITS_10
    assert known["self._can(x)"] == {**ADMITS_10, "10.0": "depends"}


@pytest.mark.parametrize(
    "others",
    [
        pytest.param("    def other(self):\n        self.can = False\n", id="set again"),
        pytest.param("    def other(self):\n        self.n, self.can = 1, 2\n", id="in a tuple"),
        pytest.param("    def other(self):\n        self.can |= True\n", id="changed"),
    ],
)
def test_an_attribute_that_is_set_twice_is_not_told(others: str) -> None:
    found = gates(
        f"class A:\n    def __init__(self):\n        self.can = {CAPABILITY}[0] == 10\n{others}\n"
        "    def run(self):\n        if self.can:\n            return 1\n"
    )
    assert not [one for one in found if one.text == "self.can"]


def test_another_class_has_attributes_of_its_own() -> None:
    found = gates(
        f"class A:\n    def __init__(self):\n        self.can = {CAPABILITY}[0] == 10\n\n"
        "class B:\n    def run(self):\n        if self.can:\n            return 1\n"
    )
    assert not [one for one in found if one.text == "self.can"]


def test_an_attribute_that_was_handed_in_is_none() -> None:
    found = gates(
        """
        class A:
            def __init__(self, arch):
                self.arch = arch
                self.sizes = (arch.width, arch.height)

            def run(self, x):
                if arch.width > 3:
                    return self.sizes
        """
    )
    assert [one.text for one in found] == []


def test_nothing_is_in_what_a_table_lacks() -> None:
    *_, found = gates(
        """
        SIZES = {(10, 0): [2, 4], (10, 3): [2]}

        def f(size, device):
            cap = torch.cuda.get_device_capability(device)
            if size not in SIZES.get(cap, ()):
                return False
        """
    )
    assert answers(found) == {**ADMITS_10, "10.0": "depends"}
