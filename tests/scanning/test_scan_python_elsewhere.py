"""Conditions that seem to test the architecture: some ask for something else, some are told by a class."""

from __future__ import annotations

import pytest
from test_scan_python import admitted, gates

from gatepatch.arch import TABLE
from gatepatch.scanning.found import admission

ELSEWHERE = [
    pytest.param(
        "def path(root, arch):\n    return root / arch / 'kernel.bin'\n"
        "def f(root, arch):\n    built = path(root, arch)\n    if not built.exists():\n        make(built)\n",
        id="what was built so far",
    ),
    pytest.param(
        "def f(self, device):\n    key = (g(device), get_device_capability(device))\n"
        "    if key not in self._made_archs:\n        self._made_archs[key] = make(key)\n",
        id="a cache that is filled on a miss",
    ),
    pytest.param(
        "def f(spec):\n    if spec.sm >= spec.sm_tile:\n        return 1\n",
        id="two fields of one record",
    ),
    pytest.param(
        "def f(rows):\n    for sm in rows.keys():\n        last = [*rows][-1]\n"
        "        text = '' if sm == last else ','\n",
        id="a comma after all but the last",
    ),
    pytest.param(
        "def f():\n    arch = envs.WANTED_ARCH.get()\n    if arch not in KINDS_OF_ARCH:\n        raise X\n",
        id="a user's setting",
    ),
    pytest.param(
        "def f(name):\n    arch = torch.cuda.get_device_properties(0).gcnArchName\n"
        "    return any(one in arch for one in name)\n",
        id="a name that AMD's devices have",
    ),
    pytest.param(
        "def f(names):\n    known = any(ModelTable.is_arch_supported(arch) for arch in names)\n"
        "    if not known:\n        return 1\n",
        id="a model's architecture",
    ),
    pytest.param(
        "def f(seen):\n    return make(seen.cuda_arch_minor or 0)\n",
        id="what stands for it where there is none",
    ),
    pytest.param(
        "def f(archs):\n    for arch in archs:\n        major, minor = arch.split('.')\n"
        "        if minor[-1].isalpha():\n            g(major)\n",
        id="how a name is written",
    ),
    pytest.param(
        "def f(arch):\n    arch = arch.strip()\n    for prefix in ('sm_', 'sm'):\n"
        "        if arch.startswith(prefix):\n            arch = arch[len(prefix) :]\n",
        id="a prefix that is taken off",
    ),
    pytest.param(
        "def f(self):\n    seen_archs = [(row.n, row.compute_capability) for row in self.rows]\n"
        "    if not seen_archs:\n        return None\n",
        id="whether there is any at all",
    ),
    pytest.param(
        "BUILT = {n: tuple(k for k, row in ROWS.items() if arch in row['archs']) for n, arch in NAMES.items()}\n",
        id="a table that is made for all",
    ),
]


@pytest.mark.parametrize("text", ELSEWHERE)
def test_a_condition_that_asks_for_something_else_is_no_gate(text: str) -> None:
    assert gates(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "def f(self, arch):\n    if arch not in self.served_archs:\n        return None\n",
        "def f(spec, plan):\n    if spec.sm >= plan.sm_tile:\n        return 1\n",
    ],
)
def test_what_may_be_the_device_stays_a_gate(text: str) -> None:
    assert gates(text)


LEAST = (
    "class Config:\n    @classmethod\n    def get_min_capability(cls):\n"
    "        if _is_npu:\n            raise NotImplementedError('no')\n        else:\n            return 100\n"
)


@pytest.mark.parametrize(
    "text",
    [
        LEAST + "def f():\n    return get_device_sm() >= Config.get_min_capability()\n",
        LEAST
        + "def f(config: Config):\n    return get_device_sm() >= config.get_min_capability()\n",
        LEAST.replace("classmethod", "staticmethod").replace("cls", "")
        + "def f(config: Config):\n    return get_device_sm() >= config.get_min_capability()\n",
    ],
    ids=["of a class", "of a parameter's class", "of one without an instance"],
)
def test_a_method_that_gives_a_constant_is_read(text: str) -> None:
    (found,) = gates(text)
    assert not found.unknown
    archs = admitted(found).split()
    assert "90" not in archs
    assert {"100", "120"} <= {*archs}


def test_a_least_capability_of_a_class_that_is_not_known_is_not_told() -> None:
    (found,) = gates("def f(config):\n    return get_device_sm() >= config.get_min_capability()\n")
    assert found.unknown


def test_the_truth_of_an_alias_of_a_chain_is_followed() -> None:
    found = gates(
        "def fits(rows, device):\n    if not rows.good:\n        return False\n"
        "    return bool(rows.n == 4 and get_device_capability(device) == (10, 0))\n"
        "def f(rows, device, one, two):\n    shared = one or two\n"
        "    tail = shared and not two and fits(rows, device)\n    if tail:\n        return 1\n"
    )
    assert found
    assert not any(one.unknown for one in found)


def test_a_module_that_a_function_imports_is_read() -> None:
    (found,) = gates(
        "def f():\n    from pkg import wide\n\n    return wide.is_arch_supported(2)\n",
        {"pkg/wide.py": b"def is_arch_supported(n):\n    return get_device_sm() >= 100\n"},
    )
    archs = admitted(found).split()
    assert "90" not in archs
    assert {"100", "120"} <= {*archs}


def test_a_flag_that_is_taken_back_where_an_import_fails_is_told() -> None:
    found = gates(
        "_is_fast_sm100 = is_cuda() and get_device_sm() == 100\n"
        "if _is_fast_sm100:\n    try:\n        import fast\n"
        "    except ImportError:\n        _is_fast_sm100 = False\n"
        "else:\n    _is_fast_sm100 = False\n"
        "def f(n):\n    if _is_fast_sm100 and n > 1:\n        return 1\n"
    )
    assert found
    assert not any(one.unknown for one in found)
    assert all("90" not in admitted(one).split() for one in found)


def test_the_shape_of_a_tensor_is_no_test() -> None:
    (found,) = gates(
        "def f(x):\n    out = hopper_attention_sm90(x)\n"
        "    out = blackwell_attention_sm100(out)\n"
        "    few = get_device_sm() == 100 and 0 < out.shape[0] <= 32\n    return few\n"
    )
    assert not found.unknown


OPEN = (
    "class Any:\n    _archs: ClassVar[tuple[int, ...]]\n\n    def f(self, arch):\n"
    "        major, minor = get_device_capability()\n"
    "        if major * 10 + minor not in self._archs:\n            raise X\n"
    "class One(Any):\n    _archs = (90, 100)\n"
)


def test_what_a_class_leaves_to_others_depends_on_which() -> None:
    (found,) = (one for one in gates(OPEN + "class Two(Any):\n    _archs = (100,)\n"))
    assert not found.unknown
    answers = admission(found.verdict, rejects=found.rejects).answers
    told = {arch.sm: answer for arch, answer in zip(TABLE, answers, strict=True)}
    assert (told[90], told[100], told[120]) == ("depends", "admits", "shuts")


def test_where_not_all_of_them_are_known_it_is_not_told() -> None:
    (found,) = gates(OPEN + "class Two(Any):\n    _archs = read()\n")
    assert found.unknown


def test_device_properties_have_a_capability() -> None:
    (found,) = gates(
        "def f(device):\n    seen = torch.cuda.get_device_properties(device)\n"
        "    if not (hasattr(seen, 'major') and seen.major == 12):\n        raise X\n"
    )
    assert admitted(found) == "120 121"


LAZY = b"""
import importlib

_NAMES = {"can_use_tiled_sm100": ".tiled", "other": "pkg.ops.tiled"}

def __getattr__(name):
    return getattr(importlib.import_module(_NAMES[name], __name__), name)
"""

TILED = b"""
import torch

def can_use_tiled_sm100(device, width):
    if width != 128:
        return False
    return torch.cuda.get_device_capability(device) in ((10, 0), (10, 3))
"""


def test_a_name_is_imported_when_it_is_first_asked_for() -> None:
    files = {"pkg/ops/__init__.py": LAZY, "pkg/ops/tiled.py": TILED}
    (found,) = gates(
        "from pkg.ops import can_use_tiled_sm100\n"
        "def f(x, width):\n    if can_use_tiled_sm100(x.device, width):\n        return 1\n",
        files,
    )
    assert admitted(found) == "100 103"
    assert not found.unknown


def test_tables_of_lazy_names_that_differ_tell_nothing() -> None:
    lazy = LAZY + b"_MORE = {'can_use_tiled_sm100': '.other'}\n"
    files = {"pkg/ops/__init__.py": lazy, "pkg/ops/tiled.py": TILED}
    (found,) = gates(
        "from pkg.ops import can_use_tiled_sm100\n"
        "def f(x, width):\n    if can_use_tiled_sm100(x.device, width):\n        return 1\n",
        files,
    )
    assert found.unknown
