"""Tables that a module builds out of constants, and data that it reads."""

from __future__ import annotations

import json

import pytest
from test_scan_python import gates

from gatepatch.arch import Arch
from gatepatch.boolean import Bool, atoms
from gatepatch.scanning.python import PythonScanner

HEAD = "def arch(device):\n    return {(9, 0): 'sm_90a', (10, 0): 'sm_100a'}.get(get_device_capability(device))\n"
EXPANDED = (
    "SHORT = {'first': ['sm_90a', ['a', 'b']], 'second': ['sm_100a', ['a']]}\n"
    "def expand(rows, *, extra):\n"
    "    found: dict = {}\n"
    "    for name, (arch, stages) in rows.items():\n"
    "        record = {'arch': arch}\n"
    "        for stage in stages:\n"
    "            if stage in extra:\n                continue\n"
    "            record[stage] = {'unit': f'{name}_{stage}'}\n"
    "        record.update(long=len(record) > 2)\n"
    "        found[name] = record\n"
    "    return found\n"
    "RECORDS = expand(SHORT, extra=())\n"
)

TOLD = [
    pytest.param(
        EXPANDED + "def archs_with(stage):\n"
        "    found = set()\n"
        "    for row in RECORDS.values():\n        if stage in row:\n            found.add(row['arch'])\n"
        "    return found\n"
        "def f(device):\n    return arch(device) in archs_with('b')\n",
        (True, False, None),
        id="a registry that a function expands",
    ),
    pytest.param(
        "ROWS = {'x': ['sm_90a'], 'y': ['sm_90a', 'sm_100a']}\n"
        "def record(row):\n    return {'arches': [*row]}\n"
        "ALL = {name: record(row) for name, row in ROWS.items()}\n"
        "def every():\n    return sorted({one for row in ALL.values() for one in row['arches']})\n"
        "def f(device):\n    if arch(device) not in every():\n        raise X\n",
        (False, False, True),
        id="a set over two loops",
    ),
    pytest.param(
        "from pathlib import Path\nimport json\n"
        "def table():\n"
        "    found = json.loads(Path(__file__).with_name('table.json').read_text())\n"
        "    if found['version'] != 1:\n        raise X\n"
        "    return found\n"
        "def f(device):\n    known = sorted(table()['arches'])\n"
        "    if arch(device) not in known:\n        raise X\n",
        (True, False, True),
        id="data that stands beside the module",
    ),
    pytest.param(
        "import pkg.rows\n"
        "def f(device):\n    return arch(device) in getattr(pkg.rows, 'ROUTES', {})\n",
        (False, True, False),
        id="a table of another module that may not be there",
    ),
    pytest.param(
        "NAMES = [f'sm_{n}a' for n in range(80, 180)]\n"
        "def f(device):\n    return arch(device) in tuple(n for n in NAMES if n.endswith('0a'))\n",
        (True, True, False),
        id="a comprehension over many",
    ),
    pytest.param(
        "def f(device):\n    return a and arch(device) in helper('sm_90a')\n"
        "def helper(name):\n    found = []\n    for one in ('sm_90a', 'sm_80'):\n"
        "        if one == name:\n            found.append(one)\n            break\n"
        "    return found\n",
        (None, False, None),
        id="a loop in a function that is handed a constant",
    ),
]


def verdicts(text: str) -> list[Bool]:
    """The truth of the last gate on 9.0, 10.0 and 12.0."""
    files = {
        "pkg/a.py": text.encode(),
        "pkg/rows.py": ROWS,
        "pkg/table.json": json.dumps(TABLE).encode(),
    }
    found, _ = PythonScanner(files.get).scan("pkg/a.py", text.encode())
    gate = next(one for one in reversed(found) if one.within == "f")
    return [gate.verdict.table[Arch(n, 0)] for n in (9, 10, 12)]


ROWS = b"""
def routes():
    found = {'sm_100a': {}}
    for arches, name in ((['sm_100a'], 'x'), ('sm_100a', 'y')):
        if isinstance(arches, str):
            arches = [arches]
        for arch in arches:
            found[arch].setdefault(name, {})[name] = 1
    return found
ROUTES = routes()
"""
TABLE = {"version": 1, "arches": {"sm_100a": {}}}


@pytest.mark.parametrize(("text", "wanted"), TOLD)
def test_tables_are_worked_out(text: str, wanted: tuple[bool | None, ...]) -> None:
    answers = verdicts(HEAD + text)
    assert not any(part.unknown for one in answers for part in atoms(one))
    assert tuple(one if isinstance(one, bool) else None for one in answers) == wanted


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            "ROWS = {}\ndef build():\n    return dict(ROWS)\n"
            "def f(device):\n    return arch(device) in build()\n",
            id="a table that is there to be filled",
        ),
        pytest.param(
            "import os\nNAMES = [n for n in os.environ.get('N', '').split()]\n"
            "def f(device):\n    return arch(device) in NAMES\n",
            id="the environment",
        ),
        pytest.param(
            "ROWS = {'x': ['sm_90a']}\ndef build():\n    ROWS['x'].append('sm_100a')\n    return ROWS['x']\n"
            "def f(device):\n    return arch(device) in build()\n",
            id="a function that changes what it did not make",
        ),
        pytest.param(
            "def build(n):\n    while n:\n        n -= 1\n    return ['sm_90a']\n"
            "def f(device):\n    return arch(device) in build(9)\n",
            id="a loop without an end that is known",
        ),
    ],
)
def test_what_is_not_made_of_constants_is_not_told(text: str) -> None:
    answers = verdicts(HEAD + text)
    assert not all(isinstance(one, bool) for one in answers)


def test_what_raises_before_leaves_an_operand_without_effect() -> None:
    text = (
        "def arch(device):\n    if get_device_capability(device) != (10, 0):\n        raise X\n"
        "    return 'sm_100a'\n"
        "def f(device):\n    name = arch(device)\n    ok = bool(split and name in ('sm_100a',))\n"
        "    if ok:\n        go()\n"
    )
    found = gates(text)[-1].verdict.table
    assert found[Arch(9, 0)] is False
    assert not isinstance(found[Arch(10, 0)], bool)
