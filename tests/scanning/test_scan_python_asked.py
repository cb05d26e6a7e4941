"""Conditions that ask a function about an architecture that they hand over."""

from __future__ import annotations

import pytest
from test_scan_python import admitted, gates

from gatepatch.arch import Arch

SERVED = """
ROUTES = {"sm_90a": ("wide",), "sm_100a": ("wide", "narrow")}

def route_exists(name, arch):
    return name in ROUTES.get(arch, ())

def sizes(arch):
    return {"sm_100a": (1024,), "sm_103a": (1024, 2048)}.get(arch, ())

def chain(arch, count):
    return {"sm_103a": (1, 2)}.get(arch)
"""


def last(text: str) -> tuple[str, str]:
    """The text of the last gate, and when it admits what."""
    found = gates(SERVED + text)[-1]
    assert found.line > SERVED.count("\n")
    assert not found.unknown
    return found.text, admitted(found)


@pytest.mark.parametrize(
    ("text", "admits"),
    [
        pytest.param(
            "def f(arch):\n    if not route_exists('narrow', arch):\n        raise X\n",
            "100",
            id="by position",
        ),
        pytest.param(
            "def f(kind, device_arch):\n    return kind and route_exists(name='narrow', arch=device_arch)\n",
            "100",
            id="by name",
        ),
        pytest.param(
            "def f(arch):\n    if chain(arch, 3) is None:\n        raise X\n", "103", id="or None"
        ),
        pytest.param(
            "def f(arch):\n    rule = chain(arch, 3)\n    if rule is not None:\n        return rule\n",
            "103",
            id="a name for what it gives",
        ),
        pytest.param(
            "def f(arch):\n    return 2048 in sizes(arch)\n", "103", id="one of what it gives"
        ),
    ],
)
def test_a_function_is_asked_about_an_architecture(text: str, admits: str) -> None:
    assert last(text)[1] == admits


def test_what_it_does_not_tell_for_some_architectures_depends_there() -> None:
    found = gates(
        "import kernels\nARCHS = ('sm_100a',)\n"
        "def served(arch, size, a=1, b=2, c=3, d=4, e=5):\n    if arch not in ARCHS:\n        return False\n"
        "    for one in kernels.of(arch):\n        if one == size:\n            return True\n"
        "    return False\n"
        "def f(arch, size):\n    if served(arch, size):\n        return 1\n"
    )[-1]
    assert found.text == "served(arch, size)"
    assert admitted(found) == "100"
    assert not found.verdict.unknown


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("if isinstance(arch, str):\n        return 1\n", id="its kind"),
        pytest.param("if fits(arch, size):\n        return 1\n", id="not told"),
        pytest.param("return rows(arch) or 3\n", id="one value or another"),
        pytest.param("if rows(arch) > 3:\n        return 1\n", id="a number that it gives"),
    ],
)
def test_not_what_is_told_of_none(text: str) -> None:
    assert not gates(f"from kernels import fits, rows\ndef f(arch, size):\n    {text}")


def test_a_call_that_is_only_tried_is_not_followed() -> None:
    found = gates(
        "def find(arch):\n    if arch != 'sm_90a':\n        raise KeyError(arch)\n"
        "def is_sm_there(arch):\n    try:\n        find(arch)\n    except KeyError:\n"
        "        return False\n    return True\n"
        "def f(arch):\n    if is_sm_there(arch) and arch == 'sm_90a':\n        return 1\n"
    )[-1]
    assert found.verdict.table[Arch(9, 0)] is not True


def tall(lines: int) -> str:
    """A condition that asks a function of so many lines."""
    return (
        "def fits(*, capability, size, most):\n    if capability not in ((10, 0), (10, 3)):\n"
        "        return False\n" + "    # a word on it\n" * lines + "    return size <= most\n"
        "def f(x, size, most):\n    capability = torch.cuda.get_device_capability(x.device)\n"
        "    if not fits(capability=capability, size=size, most=most):\n        raise X\n"
    )


def test_what_depends_everywhere_is_followed_further() -> None:
    assert admitted(gates(tall(40))[-1]) == "100 103"


def test_what_is_not_followed_then_either_is_not_listed() -> None:
    asked = [one for one in gates(tall(200)) if "fits" in one.text]
    assert not asked


def test_nor_what_hangs_on_something_that_raises() -> None:
    asked = gates(
        "BANDS = {'sm_100a': ((4, 8),), 'sm_103a': ((8, 8),)}\n"
        "def bands(arch):\n    if arch not in BANDS:\n        raise ValueError(arch)\n"
        "    return tuple((int(a), int(b)) for a, b in BANDS[arch])\n"
        "def pushes(rows, size, arch):\n    some = bands(arch)\n    if size >= 4 and rows <= limit(rows):\n"
        "        return True\n    return any(size == a and rows == b for a, b in some)\n"
        "def f(rows, size, arch):\n    if pushes(rows, size, arch):\n        return 1\n"
    )
    assert not [one for one in asked if one.text.startswith("pushes")]


PICKED = """
import torch
SERVED = {(10, 0): "sm_100a", (10, 3): "sm_103a"}
PICKS = {(12, 0, 188): {(1, 2): 3}}

def arch_for(device=None):
    if device.type != "cuda":
        return None
    return SERVED.get(torch.cuda.get_device_capability(device))

def runs_hidden(arch):
    if arch != "sm_103a":
        return True
    return tuple(version()) != (13, 0)

def device_capability(index):
    cc = torch.cuda.get_device_capability(index)
    return int(cc[0]), int(cc[1])

def compact_pick(capability, count, size):
    picks = PICKS.get((int(capability[0]), int(capability[1]), int(count)))
    if not picks or not size:
        return None
    low = 0
    for step in STEPS:
        if low < size <= step:
            break
        low = step
    return picks.get((low, size))
"""


@pytest.mark.parametrize(
    ("text", "table"),
    [
        pytest.param(
            "def f(device):\n    arch = arch_for(device)\n    return arch is not None and not runs_hidden(arch)\n",
            {"9.0": False, "10.0": False, "10.3": None, "12.0": False},
            id="beside whether there is one",
        ),
        pytest.param(
            "def f(index, count, size):\n"
            "    pick = compact_pick(device_capability(index), count, size)\n"
            "    if pick is None:\n        return None\n    return g(pick)\n",
            {"9.0": True, "10.0": True, "12.0": None},
            id="told for some alone",
        ),
    ],
)
def test_what_depends_on_what_a_function_says_is_looked_into(
    text: str, table: dict[str, bool | None]
) -> None:
    found = gates(PICKED + text)[-1]
    assert found.line > PICKED.count("\n")
    assert not found.unknown
    functions = {str(point): function for point, function in found.verdict.table.items()}
    shown = {arch: f if isinstance(f, bool) else None for arch, f in functions.items()}
    assert {arch: shown[arch] for arch in table} == table
