"""Conditions of Python files that a scan can tell, though a proof would not."""

from __future__ import annotations

import pytest
from test_scan_python import gates

from gatepatch.arch import Arch
from gatepatch.boolean import to_text

TOLD = [
    pytest.param(
        "CCS = frozenset({(10, 0), (10, 3)})\n"
        "def f(capability):\n    return (int(capability[0]), int(capability[1])) in CCS\n",
        ("no", "yes", "no"),
        id="a set that a call makes",
    ),
    pytest.param(
        "A = frozenset({'sm_90a'})\nB = A | {'sm_100a'}\ndef f(arch):\n    return arch in B\n",
        ("yes", "yes", "no"),
        id="a union",
    ),
    pytest.param(
        "ARCHS = {(9, 0): 'sm_90a', (12, 0): 'sm_120a'}\n"
        "BY_NAME = {name: cc for cc, name in ARCHS.items()}\n"
        "def f(arch):\n    return arch in BY_NAME\n",
        ("yes", "no", "yes"),
        id="a dictionary that another is turned into",
    ),
    pytest.param(
        "def f(device_capability):\n    cc = [int(v) for v in device_capability]\n"
        "    return (cc[0], cc[1]) == (10, 0)\n",
        ("no", "yes", "no"),
        id="the parts of a capability, one by one",
    ),
    pytest.param(
        "SEEN = {(12, 0, 188)}\ndef f(capability):\n    key = (*capability, 188)\n    return key in SEEN\n",
        ("no", "no", "yes"),
        id="a pair that is spread",
    ),
    pytest.param(
        "def f(ctx):\n    return (10, '0a') in ctx.TARGET_CUDA_ARCHS\n",
        ("no", "yes", "no"),
        id="one target of those that are compiled for",
    ),
    pytest.param(
        "def f(ctx):\n    if not ctx.TARGET_CUDA_ARCHS & {(9, '0a'), (12, '0f')}:\n        raise X\n",
        ("no", "yes", "no"),
        id="what is common to two sets of targets",
    ),
    pytest.param(
        "def f(ctx):\n    return any(major >= 10 for major, _ in ctx.TARGET_CUDA_ARCHS)\n",
        ("no", "yes", "yes"),
        id="any of the targets",
    ),
    pytest.param(
        "def f(arch):\n    hopper = arch.startswith('sm_90')\n    if hopper:\n        return 1\n",
        ("yes", "no", "no"),
        id="what a name begins with",
    ),
    pytest.param(
        "def f(sm_arch):\n    code = sm_arch.removeprefix('sm_')\n"
        "    if code[-1:] in ('a', 'f'):\n        code = code[:-1]\n"
        "    number = int(code)\n    if number < 100:\n        raise X\n",
        ("yes", "no", "no"),
        id="the number in a name, bound twice",
    ),
    pytest.param(
        "import torch\ndef f(cc):\n    if cc is None:\n"
        "        cc = torch.cuda.get_device_capability()\n    return cc == (9, 0)\n",
        ("yes", "no", "no"),
        id="an argument that is asked for where it is not given",
    ),
    pytest.param(
        "import torch\ndef f(kind):\n    arch = torch.cuda.get_device_capability()[0]\n"
        "    if kind == 'a':\n        ok = arch == 9\n    elif kind == 'b':\n        raise X\n"
        "    else:\n        ok = arch == 9 or kind is None\n    if not ok:\n        return None\n",
        (
            "no",
            "(kind == 'a') or (not (kind is None))",
            "(kind == 'a') or (not (kind is None))",
        ),
        id="a name that each branch binds",
    ),
    pytest.param(
        "import torch\ntry:\n    import lib\n    _ok = torch.cuda.get_device_capability() >= (10, 0)\n"
        "except ImportError:\n    _ok = False\nif _ok:\n    x = 1\n",
        ("no", "the try on line 2 succeeds", "the try on line 2 succeeds"),
        id="a name that is bound where an import fails",
    ),
    pytest.param(
        "ROUTES = {'sm_100a': {'x': 1}}\ndef f(arch, kind):\n    return kind in ROUTES.get(arch, {})\n",
        ("no", "kind in {'x': 1}", "no"),
        id="what is in a table for an architecture, and in none",
    ),
]


@pytest.mark.parametrize(("text", "expected"), TOLD)
def test_it_can_be_told(text: str, expected: tuple[str, str, str]) -> None:
    archs = (Arch(9, 0), Arch(10, 0), Arch(12, 0))
    found = [tuple(to_text(one.verdict.table[arch]) for arch in archs) for one in gates(text)]
    assert expected in found


@pytest.mark.parametrize(
    "text",
    [
        "_DONE = set()\ndef f(arch, kind):\n    if (arch, kind) in _DONE:\n        return 1\n",
        "_CACHE = {}\ndef f(gpu_arch):\n    return gpu_arch in _CACHE\n",
        "def f(arch):\n    return arch or 'sm_100a'\n",
        "def f(arch):\n    if arch:\n        return 1\n",
        "def f(arch):\n    return arch in ('Model7ForCausalLM', 'OtherForCausalLM')\n",
        "def f(arch):\n    return 'MoE' in str(arch)\n",
        "def f(arch):\n    return arch == 'gfx950'\n",
        "def f(x):\n    if x.use_gfx950_kernel:\n        return 1\n",
        "def f(major):\n    return major == 'k'\n",
        "def f(ctx):\n    if not ctx.TARGET_CUDA_ARCHS:\n        raise X\n",
        "def f(nvml):\n    return 1 if nvml.nvmlDeviceGetNvLinkCapability(0) else 2\n",
        "from x import cutlass_supports_sm107\nif not cutlass_supports_sm107():\n    x = 1\n",
    ],
)
def test_it_is_no_gate(text: str) -> None:
    assert gates(text) == []
