"""Conditions of Python files that depend on something else beside the architecture."""

from __future__ import annotations

import pytest
from test_scan_python import gates

from gatepatch.arch import Arch
from gatepatch.verdict import Verdict

ROWS = "ROWS = {'a': {'on': ['sm_90a']}, 'b': {'on': ['sm_100a', 'sm_120a']}}\n"
LIMITS = "LIMITS = {'sm_100a': 64, 'sm_120a': 32}\n"


def told(verdict: Verdict) -> str:
    """Yes, no or it depends, on 8.0, 9.0, 10.0 and 12.0."""
    said = [verdict.table[arch] for arch in (Arch(8, 0), Arch(9, 0), Arch(10, 0), Arch(12, 0))]
    return " ".join({True: "yes", False: "no"}.get(one, "depends") for one in said)  # type: ignore[arg-type]


FREE = [
    pytest.param(
        ROWS + "def f(key, arch):\n    return arch in ROWS[key]['on']\n",
        "no depends depends depends",
        id="one of several records that differ",
    ),
    pytest.param(
        ROWS + "def f(arch):\n    for row in ROWS.values():\n        if arch not in row['on']:\n"
        "            continue\n",
        "yes depends depends depends",
        id="each of several records that differ",
    ),
    pytest.param(
        LIMITS + "def f(arch, tokens):\n    most = LIMITS.get(arch)\n"
        "    return arch in LIMITS and most >= int(tokens) // 8\n",
        "no no depends depends",
        id="a limit by architecture, and a number that is worked out",
    ),
    pytest.param(
        "STEPS = {'sm_100a': (4, 5, 6)}\n"
        "def f(arch, steps):\n    if steps in STEPS.get(arch, ()) and arch != 'sm_90a':\n        pass\n",
        "no no depends no",
        id="a number in what is listed for the architecture",
    ),
]


@pytest.mark.parametrize(("text", "expected"), FREE)
def test_it_depends_on_what_is_free(text: str, expected: str) -> None:
    found = [one for one in gates(text) if one.kind != "table"]
    assert found
    assert not any(one.unknown for one in found)
    assert told(found[-1].verdict) == expected


CASES = (
    "CASES = {('sm_100a', 1): (4, 8), ('sm_100a', 2): (16,), ('sm_120a', 1): (4,)}\n"
    "SEEN = (('sm_100a', 148), ('sm_120a', 188))\n"
)
FREE += [
    pytest.param(
        CASES
        + "def f(arch, n, batch):\n    return batch in CASES.get((arch, n), ()) and arch != 'x'\n",
        "no no depends depends",
        id="under a tuple that names the architecture, and something else",
    ),
    pytest.param(
        CASES
        + "def f(plan):\n    if not any(key[:2] == (plan.arch, plan.sm_count) for key in SEEN):\n        raise X\n",
        "yes yes depends depends",
        id="a part of a key, and the architecture beside something else",
    ),
    pytest.param(
        "RULES = {('sm_100a', 1): 2, ('sm_120a', 3): 4}\n"
        "def f(arch):\n    for (served, n), rule in RULES.items():\n"
        "        if served == arch:\n            return rule\n",
        "no no depends depends",
        id="a part of the keys that a loop goes over",
    ),
    pytest.param(
        "import torch\ndef can(major, minor):\n    try:\n        from compiler import Targets\n"
        "        for name in (f'sm_{major}{minor}a', f'sm_{major}{minor}'):\n"
        "            if name in Targets:\n                return True\n        return False\n"
        "    except ImportError:\n        return False\n"
        "def f(device):\n    cc = torch.cuda.get_device_capability(device)\n"
        "    if cc[0] < 10 or not can(*cc):\n        raise X\n",
        "yes yes depends depends",
        id="what is installed beside the package",
    ),
]


KNOWN = [
    pytest.param(
        "LIMITS = {'sm_100a': 4}\n"
        "def f(arch, n):\n    most = LIMITS.get(arch) if arch is not None else None\n"
        "    if most is None or n > 8:\n        return None\n"
        "    if arch == 'sm_90a' or most % 2:\n        return None\n",
        "yes yes no yes",
        id="one of the tests that turned the caller away before",
    ),
    pytest.param(
        "import torch\ndef wide(major, minor):\n    return (major, minor) in {(10, 0), (12, 0)}\n"
        "def f(x):\n    if wide(*torch.cuda.get_device_capability(x.device)):\n        pass\n",
        "no no yes yes",
        id="a pair that is spread over the arguments",
    ),
    pytest.param(
        "import torch\n_has_sm120 = torch.cuda.get_device_capability()[0] == 12\n"
        "if _has_sm120:\n    try:\n        import kernels\n    except ImportError:\n"
        "        _has_sm120 = False\nelse:\n    kernels = None\n",
        "no no no yes",
        id="a module's name where it is bound anew later",
    ),
    pytest.param(
        "TABLE = {'sm_100a': [1], 'sm_120a': [2]}\n"
        "MADE = {arch: sorted(rows(one)) for arch, one in TABLE.items()}\n"
        "def f(arch):\n    if arch not in MADE:\n        raise X\n",
        "yes yes no no",
        id="keys of a mapping whose values are not known",
    ),
    pytest.param(
        "TABLE = {'sm_100a': [1], 'sm_120a': [2]}\n"
        "MADE = {arch: dict(sorted(rows(one))) for arch, one in TABLE.items()}\n"
        "def f(arch):\n    arch_rows = MADE.get(arch)\n    if arch_rows is None:\n        raise X\n",
        "yes yes no no",
        id="what such a mapping gives is made in place",
    ),
    pytest.param(
        "ROWS = {'a': {'on': ['sm_100a']}, 'b': {'on': ['sm_100a']}}\n"
        "def record(name):\n    found = ROWS.get(name)\n    if found is None:\n        raise KeyError(name)\n"
        "    return found\n"
        "def f(name, arch):\n    row = record(name)\n    if arch not in row['on']:\n        raise X\n",
        "yes yes no yes",
        id="a function that hands out a record",
    ),
    pytest.param(
        "import torch\ndef major(device):\n    probe = torch.cuda.get_device_capability\n"
        "    first, second = probe(device)\n    return first\n"
        "def f(device):\n    if major(device) != 12:\n        raise X\n",
        "yes yes yes no",
        id="the query under another name",
    ),
    pytest.param(
        "import torch\ndef f(x):\n"
        "    cap = torch.cuda.get_device_capability() if x.is_cuda else None\n"
        "    if cap is None:\n        return False\n"
        "    if cap not in {(9, 0), (12, 0)}:\n        return False\n",
        "yes no yes no",
        id="what was turned away before as there was none",
    ),
]


@pytest.mark.parametrize(("text", "expected"), KNOWN)
def test_it_is_the_same_whatever_is_free(text: str, expected: str) -> None:
    found = [one for one in gates(text) if one.kind != "table"]
    assert told(found[-1].verdict) == expected


def test_a_list_of_a_models_classes_is_none() -> None:
    text = "def f(config):\n    archs = list(config.architectures)\n    return any('Llama' in arch for arch in archs)\n"
    assert not gates(text)


def test_what_is_filled_in_where_it_was_not_kept_is_none() -> None:
    text = (
        "import torch\nROWS = {'sm_100a': [1]}\nKEPT = {(arch, 1): make(rows) for arch, rows in ROWS.items()}\n"
        "def f(arch, n):\n    entry = KEPT.get((arch, n))\n"
        "    if entry is None:\n        entry = KEPT[(arch, n)] = make(arch)\n    return entry\n"
    )
    assert [found.kind for found in gates(text)] == ["table"]


def test_whether_something_is_in_a_cache_is_none() -> None:
    text = (
        "import torch\n_kernel_cache = {}\ndef f(x):\n"
        "    key = (x.shape, torch.cuda.get_device_capability())\n"
        "    if key not in _kernel_cache:\n        _kernel_cache[key] = build(key)\n"
    )
    assert not gates(text)


@pytest.mark.parametrize(
    "text",
    [
        "def f(arch):\n    return arch in served()\n",
        "def f(cc, least):\n    return cc >= least.capability\n",
        "def f(row, arch):\n    return row['arch'] == arch\n",
    ],
)
def test_the_architecture_beside_what_may_be_another_is_not_known(text: str) -> None:
    (found,) = gates(text)
    assert found.unknown


def test_a_number_that_is_parsed_is_read_by_its_name() -> None:
    text = (
        "def parse_arch_number(arch):\n    for part in arch.split('_'):\n        if part:\n"
        "            return int(part)\n"
        "def f(arch):\n    arch_number = parse_arch_number(arch)\n"
        "    return arch_number in (100, 120)\n"
    )
    found = [one for one in gates(text) if one.within == "f"]
    assert told(found[0].verdict) == "no no yes yes"


def test_a_property_that_is_no_capability_is_none() -> None:
    text = (
        "import torch\ndef f(device):\n    props = torch.cuda.get_device_properties(device)\n"
        "    arch = getattr(props, 'gcnArchName', None)\n    return arch is not None\n"
    )
    assert not gates(text)


def test_what_takes_longer_is_looked_at_once_more() -> None:
    steps = "".join(f"    if n == {n}:\n        return x and rows[{n}]\n" for n in range(3, 40))
    text = (
        "import torch\n"
        f"def supported(n, x, rows):\n{steps}    return torch.cuda.get_device_capability()[0] == 12\n"
        "def f(n, x, rows):\n    if not supported(n, x, rows) or torch.cuda.get_device_capability()[0] != 12:\n"
        "        raise X\n"
    )
    found = [one for one in gates(text) if one.within == "f"]
    assert found
    assert not found[0].unknown
    assert told(found[0].verdict).startswith("yes yes yes")


@pytest.mark.parametrize(
    "key", ["key == served_capability", "served_capability == key", "served_capability != key"]
)
def test_what_a_loop_takes_out_of_a_table_is_another_architecture(key: str) -> None:
    found = gates(
        "PROGRAMS = {(10, 0): 'a', (10, 3): 'b'}\n"
        "def f(capability):\n    key = (int(capability[0]), int(capability[1]))\n"
        "    for served_capability, program in PROGRAMS.items():\n"
        f"        if {key}:\n            return program\n"
    )[-1]
    assert not found.unknown
    assert told(found.verdict) == ("yes yes depends yes" if "!=" in key else "no no depends no")


def test_a_loop_over_architectures_is_read_by_its_name() -> None:
    (found,) = gates(
        "ARCHS = ('sm_90a', 'sm_100a')\ndef f():\n    for arch in ARCHS:\n"
        "        if arch == 'sm_90a':\n            return 1\n"
    )
    assert told(found.verdict) == "no yes no no"


def test_what_callers_hand_over_as_architectures_is_not_all_that_they_may_be() -> None:
    found = gates(
        "import torch\ndef match(device, sm_version):\n"
        "    major, minor = torch.cuda.get_device_capability(device)\n"
        "    return f'{major * 10 + minor}' in sm_version\n"
        "def g(x):\n    return match(x, ['90', '100'])\ndef h(x):\n    return match(x, ['120'])\n"
    )
    assert found[0].within == "match"
    assert found[0].unknown
