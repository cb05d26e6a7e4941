"""Lists of architectures in Python files that stand somewhere else than where they are used."""

from __future__ import annotations

import textwrap

import pytest

from gatepatch.scanning.found import Found
from gatepatch.scanning.python import PythonScanner


def gates(text: str) -> list[Found]:
    """The gates of a module."""
    source = textwrap.dedent(text).encode()
    files = {"pkg/__init__.py": b""}
    found, _ = PythonScanner(files.get).scan("pkg/own.py", source)
    return found


def admitted(found: Found) -> list[str]:
    """The architectures that a gate holds for."""
    return [str(arch) for arch, holds in found.verdict.table.items() if holds is True]


@pytest.mark.parametrize("value", ["[100, 103]", "(100, 103)", "{100, 103}"])
def test_a_decorator_is_given_a_list_of_the_module(value: str) -> None:
    (found,) = gates(
        f"CCS = {value}\n\n@supported_compute_capability(CCS)\ndef check(q):\n    pass\n"
    )
    assert (found.kind, found.line, found.text) == ("decorator", 3, "CCS")
    assert admitted(found) == ["10.0", "10.3"]


def test_a_keyword_is_given_a_list_of_the_module() -> None:
    (found,) = gates("MAJORS: list[int] = [9, 10]\nflags = get(supported_major_versions=MAJORS)\n")
    assert (found.kind, found.line) == ("list", 2)
    assert admitted(found) == ["9.0", "10.0", "10.3"]


@pytest.mark.parametrize(
    "before", ["CCS = [100]\nCCS = [90]", "CCS = [100]\nCCS += [90]", "CCS = make()", "", "CCS = 3"]
)
def test_a_name_that_is_no_list_is_none(before: str) -> None:
    text = f"{before}\n@supported_compute_capability(CCS)\ndef check(q):\n    pass\n"
    assert [found for found in gates(text) if found.kind == "decorator"] == []


@pytest.mark.parametrize(
    ("name", "archs"),
    [("is_sm10x", ["10.0", "10.3"]), ("dsl_targets_sm12x", ["12.0", "12.1"])],
)
def test_a_predicate_of_a_family_is_read_by_its_name(name: str, archs: list[str]) -> None:
    (found,) = gates(f"def f(dsl):\n    if dsl.{name}():\n        return 1\n")
    assert admitted(found) == archs


LOOK_UPS = [
    pytest.param(
        "    return NAMES.get(torch.cuda.get_device_capability(device))\n",
        ["10.0", "12.0"],
        id="what a table has for the capability",
    ),
    pytest.param(
        "    return NAMES.get(torch.cuda.get_device_capability(device), ())\n",
        ["10.0", "12.0"],
        id="or nothing",
    ),
    pytest.param(
        "    return NAMES.get(torch.cuda.get_device_capability(device), 'any')\n",
        None,
        id="another value stands for what is missing",
    ),
    pytest.param(
        "    try:\n        name = NAMES[torch.cuda.get_device_capability(device)]\n"
        "    except KeyError:\n        raise Unserved from None\n    return name\n",
        ["10.0", "12.0"],
        id="a missing entry is caught",
    ),
    pytest.param(
        "    return NAMES[torch.cuda.get_device_capability(device)]\n",
        None,
        id="a missing entry is not caught",
    ),
    pytest.param(
        "    return SIZES.get(torch.cuda.get_device_capability(device))\n",
        None,
        id="a table that is not known",
    ),
]


@pytest.mark.parametrize(("body", "archs"), LOOK_UPS)
def test_what_a_function_looks_up_is_shut_where_there_is_no_entry(
    body: str, archs: list[str] | None
) -> None:
    text = (
        "import torch\nfrom outside import SIZES\n"
        "NAMES = dict([((10, 0), 'one'), ((12, 0), 'two')])\n"
        f"def name_of(device):\n{body}"
    )

    found = gates(text)

    assert [(one.kind, admitted(one)) for one in found] == (
        [("membership", archs)] if archs else []
    )
