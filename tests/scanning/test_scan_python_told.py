"""Conditions of Python files that a scan can tell, though a proof would not."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from test_scan_python import admitted, gates

from gatepatch.arch import TABLE, Arch
from gatepatch.boolean import to_text
from gatepatch.gates.python_evaluator import Evaluator
from gatepatch.gates.python_scope import Package
from gatepatch.gates.python_values import Const, Frame
from gatepatch.scanning.one_file import Scanner

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
        "import re\ndef parts(major, minor):\n"
        "    return int(major), int(re.sub(r'[a-z]+$', '', str(minor)))\n"
        "def built(ctx):\n    found = {parts(a, b) for a, b in ctx.TARGET_CUDA_ARCHS}\n"
        "    return tuple(sorted(found & {(10, 0), (12, 0)}))\n"
        "def f(ctx, capability):\n    return (capability[0], capability[1]) in built(ctx)\n",
        ("no", "yes", "yes"),
        id="the capabilities of the targets",
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
        "ROUTES = {('sm_100a', 8): 1, ('sm_100a', 16): 2, ('sm_90a', 8): 3}\n"
        "def f(arch, block):\n    return (arch, block) in ROUTES\n",
        (
            "(arch, block) in {('sm_90a', 8)}",
            "(arch, block) in {('sm_100a', 16), ('sm_100a', 8)}",
            "no",
        ),
        id="a pair of which one part is the architecture",
    ),
    pytest.param(
        "LIMITS = {('sm_100a', 148): 64}\n"
        "def f(arch, sms):\n    return LIMITS.get((arch, sms)) is None\n",
        ("yes", "{('sm_100a', 148): 64}.get((arch, sms)) is None", "yes"),
        id="what is looked up by such a pair",
    ),
    pytest.param(
        "ROUTES = {'sm_100a': {'x': 1}}\ndef f(arch, kind):\n    return kind in ROUTES.get(arch, {})\n",
        ("no", "kind in {'x': 1}", "no"),
        id="what is in a table for an architecture, and in none",
    ),
]

RECORDS = """
import torch
from dataclasses import dataclass
from typing import NamedTuple

NAMES = {(9, 0): "sm_90a", (10, 0): "sm_100a"}

@dataclass(frozen=True)
class Program:
    name: str
    targets: tuple[str, ...]

    def target_for(self, capability):
        target = NAMES.get((int(capability[0]), int(capability[1])))
        return target if target in self.targets else None

SMALL = Program(name="small", targets=("sm_100a",))

class Facts(NamedTuple):
    arch: str | None
    count: int

    def to_int(self):
        return 2 * self.count

class Capability(NamedTuple):
    major: int
    minor: int

    def to_int(self):
        return self.major * 10 + self.minor

def facts(index):
    found = torch.cuda.get_device_properties(index)
    return Facts(NAMES.get((found.major, found.minor)), found.multi_processor_count)

def pair(index):
    return (NAMES.get(torch.cuda.get_device_capability(index)), index)

class Base:
    @classmethod
    def is_cuda(cls):
        return cls.kind == "cuda"

    @classmethod
    def is_blackwell(cls):
        if not cls.is_cuda():
            return False
        return torch.cuda.get_device_capability()[0] == 10

    @classmethod
    def get_min_capability(cls):
        return (10, 0)

class Platform(Base):
    caps = {(8, 0), (12, 0)}

    def __init__(self):
        self.is_hopper_or_newer = torch.cuda.get_device_capability() >= (9, 0)

    @classmethod
    def check(cls):
        cap = torch.cuda.get_device_capability()
        if cap not in cls.caps:
            raise ValueError
        return torch.cuda.get_device_capability() >= cls.get_min_capability()

current: Platform
"""
"""A package's file that the following conditions are added to."""

OF_RECORDS = [
    pytest.param(
        "def f():\n    target = SMALL.target_for(torch.cuda.get_device_capability())\n"
        "    if target is None:\n        raise X\n",
        ("yes", "no", "yes"),
        id="a record's method",
    ),
    pytest.param(
        "def f(i):\n    return facts(i).arch is None\n", ("no", "no", "yes"), id="a field"
    ),
    pytest.param(
        "def f(i):\n    arch = pair(i)[0]\n    return arch is None\n",
        ("no", "no", "yes"),
        id="one of a pair",
    ),
    pytest.param(
        "def f():\n    cap = Capability(*torch.cuda.get_device_capability())\n"
        "    return cap.to_int() >= 100\n",
        ("no", "yes", "yes"),
        id="a record that a pair is made into",
    ),
    pytest.param(
        "def f():\n    return current.is_blackwell()\n",
        ("no", "cls.is_cuda()", "no"),
        id="a predicate of a class that returns early",
    ),
    pytest.param("", ("yes", "yes", "no"), id="a set that is an attribute of the class"),
    pytest.param("", ("no", "yes", "yes"), id="a least capability that a method returns"),
    pytest.param(
        "class Other(Platform):\n    def __init__(self):\n"
        "        self.use_sm100 = torch.cuda.get_device_capability() == (10, 0)\n"
        "    def run(self):\n        if self.use_sm100:\n            return 1\n",
        ("no", "yes", "no"),
        id="an attribute that is set once",
    ),
    pytest.param(
        "ALL = (SMALL, Program(name='large', targets=('sm_90a', 'sm_100a')))\n"
        "def f():\n    name = NAMES.get(torch.cuda.get_device_capability())\n"
        "    return any(name in program.targets for program in ALL)\n",
        ("yes", "yes", "no"),
        id="any of several records",
    ),
    pytest.param(
        "def f(platform):\n    return platform.is_hopper()\n",
        ("yes", "no", "no"),
        id="a predicate of an object that is not known",
    ),
]


def _told(text: str) -> list[tuple[str, ...]]:
    archs = (Arch(9, 0), Arch(10, 0), Arch(12, 0))
    return [tuple(to_text(one.verdict.table[arch]) for arch in archs) for one in gates(text)]


@pytest.mark.parametrize(("text", "expected"), OF_RECORDS)
def test_a_record_and_a_class_are_looked_into(text: str, expected: tuple[str, str, str]) -> None:
    assert expected in _told(RECORDS + text)


@pytest.mark.parametrize(("text", "expected"), TOLD)
def test_it_can_be_told(text: str, expected: tuple[str, str, str]) -> None:
    assert expected in _told(text)


def test_a_long_predicate_that_returns_a_pair_depends_on_what_it_is_asked_for() -> None:
    filler = "    # Told.\n" * 100
    (found,) = (
        one
        for one in gates(
            "def kind_capability(kind):\n    major, minor = torch.cuda.get_device_capability()\n"
            + filler
            + "    if kind == 'a':\n        if major < 9:\n            return False, 'old'\n"
            "        return True, ''\n    if kind == 'b':\n        try:\n            import b_kernels\n"
            "        except ImportError as error:\n            return False, f'none: {error}'\n"
            "        return major == 10, ''\n    return False, 'which'\n"
            "def run(kind):\n    ok, why = kind_capability(kind)\n    if not ok:\n        skip(why)\n        return\n"
        )
        if one.text == "not ok"
    )
    assert not found.verdict.unknown


def test_a_pair_depends_on_what_is_installed() -> None:
    found = gates(
        "def kind_capability(kind):\n    major = torch.cuda.get_device_capability()[0]\n"
        "    if kind == 'a':\n        try:\n            import a_kernels\n"
        "        except ImportError as error:\n            return False, f'none: {error}'\n"
        "        if major >= 10:\n            return False, f'too new: {major}'\n"
        "        return True, ''\n" + "    # Told.\n" * 100 + "    return False, 'which'\n"
        "def run():\n    ok, why = kind_capability('a')\n    if not ok:\n        skip(why)\n        return\n"
    )
    (gate,) = (one for one in found if one.text == "not ok")
    assert not gate.verdict.unknown
    assert gate.verdict.table[Arch(10, 0)] is True
    assert not isinstance(gate.verdict.table[Arch(9, 0)], bool)


def test_a_long_table_is_named_and_not_shown() -> None:
    package = Package(lambda path: b"")
    module = package.module("m.py")
    assert module is not None
    one = Evaluator(package, {}, Arch(9, 0))
    node = ast.parse("f'{table}_{arch}'", mode="eval").body
    told = {
        size: one.with_known(node, Frame(module, {"table": Const(list(range(size)))}))
        for size in (3, 999, 1000)
    }
    assert told[3] == "f'{[0, 1, 2]}_{arch}'"
    assert max(map(len, told.values())) < 40
    assert len({*told.values()}) == len(told)


def test_the_type_of_a_device_that_is_made_is_known() -> None:
    found = gates(
        "def newer(device):\n    if device.type != 'cuda':\n        return False\n"
        "    return torch.cuda.get_device_capability(device)[0] >= 9\n"
        "def f(i):\n    device = torch.device('cuda', i)\n    if newer(device):\n        return 1\n"
    )
    assert found[-1].verdict.table[Arch(9, 0)] is True


def test_a_loop_over_limits_depends_on_what_it_is_asked_for() -> None:
    found = gates(
        "LIMITS = {'sm_100a': [(1, 2), (3, 4)]}\n"
        "def admits(arch, batch):\n    if arch not in LIMITS:\n        return False\n"
        "    for least, most in LIMITS[arch]:\n        if least <= batch <= most:\n            return True\n"
        "    return False\n"
        "def f(arch, batch):\n    if arch is not None and admits(arch, batch):\n        return 1\n"
    )
    (gate,) = (one for one in found if one.text.endswith("admits(arch, batch)"))
    assert not gate.unknown
    assert admitted(gate) == "100"


def test_what_the_device_is_against_what_a_plan_was_made_for_depends_on_the_plan() -> None:
    (found,) = gates(
        "import torch\ndef f(plan):\n    arch = torch.cuda.get_device_capability()[0]\n"
        "    if plan.arch != arch:\n        raise ValueError\n"
    )
    assert not found.unknown
    assert not any(isinstance(told, bool) for told in found.verdict.table.values())


def test_what_an_object_itself_was_made_for_is_not_known() -> None:
    (found,) = gates(
        "import torch\nclass C:\n    def f(self):\n"
        "        arch = torch.cuda.get_device_capability()[0]\n        return self.arch == arch\n"
    )
    assert found.unknown


def test_a_function_of_another_package_tells_the_capability_under_its_name() -> None:
    (found,) = gates(
        "from . import probe\ndef f(device):\n    told = probe.capability(device)\n"
        "    if told['device_capability'] == (9, 0):\n        return 1\n"
    )
    assert admitted(found) == "90"


@pytest.mark.parametrize(
    "text",
    [
        "_DONE = set()\ndef f(arch, kind):\n    if (arch, kind) in _DONE:\n        return 1\n",
        "_CACHE = {}\ndef f(gpu_arch):\n    return gpu_arch in _CACHE\n",
        "def f(arch):\n    return arch or 'sm_100a'\n",
        "def f(arch):\n    if arch:\n        return 1\n",
        "def f(arch):\n    return arch in ('Model7ForCausalLM', 'OtherForCausalLM')\n",
        "def f(arch):\n    return 'MoE' in str(arch)\n",
        "KINDS = ['ModelForCausalLM']\ndef f(archs):\n    return any(arch in KINDS for arch in archs)\n",
        "def f(n):\n    for sm in range(n):\n        if sm == n - 1:\n            return sm\n",
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


@pytest.mark.parametrize(
    ("key", "archs"),
    [
        ("sm80", "80 86 87 88 89"),
        ("sm89", "89"),
        ("gemm_sm100a_exact", "100"),
        ("gemm_sm100f_legacy", "100 103"),
        ("sm103a", "103"),
    ],
)
def test_an_entry_of_the_capabilities_that_a_function_is_handed(key: str, archs: str) -> None:
    (found,) = gates(
        f"def f(sm_capabilities, x):\n    has_{key} = sm_capabilities.get({key!r}, False)\n"
        f"    if has_{key} and x:\n        return 1\n"
    )
    assert admitted(found) == archs
    assert found.by_name


ROWS = (
    "ROWS = {'a': {'on': ['sm_100a', 'sm_103a'], 'n': 1}, 'b': {'on': ['sm_100a'], 'n': 2}}\n"
    "SAME = {'a': {'on': ['sm_100a']}, 'b': {'on': ['sm_100a']}}\n"
)

PICKED = [
    pytest.param(
        "def f(key, arch):\n    row = SAME[key]\n    if arch not in row['on']:\n        raise X\n",
        ("no", "yes", "no"),
        id="every row is for the same",
    ),
    pytest.param(
        "def f(key, arch):\n    return arch in tuple(ROWS[key]['on'])\n",
        ("no", "yes", "no"),
        id="one architecture is in all rows, others in none",
    ),
    pytest.param(
        "def f(key, arch):\n    row = SAME.get(key)\n    return arch in row.get('on', ())\n",
        ("no", "yes", "no"),
        id="a row that is got",
    ),
    pytest.param(
        "def f(arch):\n    return [k for k, row in ROWS.items() if arch in row['on']]\n",
        ("no", "yes", "no"),
        id="each row in a comprehension",
    ),
    pytest.param(
        "def f(arch):\n    for row in SAME.values():\n        if arch in row['on']:\n            return row\n",
        ("no", "yes", "no"),
        id="each row in a loop",
    ),
    pytest.param(
        "LIMITS = {'on': ['sm_100a'], 'off': ['sm_90a']}\ndef limits():\n    return LIMITS\n"
        "def wide(arch, given=None):\n    c = given or limits()\n    return arch in c['on']\n"
        "def plan(arch, given=None):\n    return wide(arch, given)\n"
        "def run(arch):\n    return plan(arch) and wide(arch, limits())\n",
        ("no", "yes", "no"),
        id="all callers in the file hand over the same table, or none",
    ),
    pytest.param(
        "ALL = {'a': {'row': SAME['a']}, 'b': {'row': SAME['b']}}\n"
        'def row_of(record):\n    """The row.' + "\n    Told.\n" * 10 + '    """\n'
        "    return record.get('row')\n"
        "def f(name, arch):\n    row = row_of(ALL[name])\n    return arch in row['on']\n",
        ("no", "yes", "no"),
        id="a function that hands out an entry, of which much is said",
    ),
    pytest.param(
        "def f(kind, x, arch):\n    if x:\n        row = SAME.get(kind)\n"
        "        return row is not None and arch in row['on']\n"
        "    row = SAME.get(kind + 'x')\n    return row is not None and arch in row['on']\n",
        ("no", "yes", "no"),
        id="a name that is bound to a row twice",
    ),
    pytest.param(
        "KINDS = {'n': 3, 'up_on': ['sm_100a'], 'down_on': ['sm_100a'], 'off': ['sm_90a']}\n"
        "def f(kind, arch):\n    return arch in KINDS[f'{kind}_on']\n",
        ("no", "yes", "no"),
        id="a key of which the end is known",
    ),
    pytest.param(
        "LIMITS = {'on': ['sm_100a'], 'off': ['sm_90a']}\n"
        "def wide(n, arch, given=None):\n    c = given or LIMITS\n    return n and arch in c['on']\n"
        "def plan(n, arch, given=None):\n    c = given or LIMITS\n"
        "    if wide(n, arch, c):\n        return 1\n"
        "def run(n, arch):\n    return plan(n, arch, LIMITS)\n",
        ("no", "yes", "no"),
        id="a table that is handed on to a predicate",
    ),
    pytest.param(
        "BUILDS = {'sm_100a': {'a': 'b'}}\n"
        "def program(name, *args, extra=None, **kwargs):\n    del extra\n"
        "    if not torch.cuda.is_available():\n        return None\n"
        "    arch = {(10, 0): 'sm_100a', (9, 0): 'sm_90a'}.get(torch.cuda.get_device_capability())\n"
        "    return BUILDS.get(arch, {}).get(name)\n"
        "def made(name, *args, **kwargs):\n"
        "    return program(name, *args, **kwargs) is not None\n",
        ("no", "yes", "no"),
        id="more is handed on than is named",
    ),
    pytest.param(
        "RULES = {\n    'a': {'rule': {'from': {'sm_100a': 8}}},\n    'b': {'rule': {'from': {'sm_100a': 4}}},\n"
        "    'c': {},\n}\n"
        "def rule_of(record):\n    return record.get('rule')\n"
        "def least(rule, arch):\n    steps = rule['from']\n    return int(steps[arch]) if arch in steps else None\n"
        "def admits(rule, *, arch, n):\n    bound = least(rule, arch)\n"
        "    if bound is None or n < bound:\n        return False\n    return n >= bound\n"
        "def pick(arch, n):\n    for name in RULES:\n"
        "        if admits(rule_of(RULES[name]), arch=arch, n=n):\n            return name\n",
        ("no", "yes", "no"),
        id="a rule that is taken out of a record, and handed on",
    ),
    pytest.param(
        "KERNELS = {'sm_100a': {'k': 'm'}}\nMADE = {'m': {'on': ['sm_100a'], 'kind': 'k'}}\n"
        "def f(arch, kind):\n    table = KERNELS.get(arch)\n    name = table.get(kind)\n"
        "    if name is None:\n        raise X\n    record = MADE.get(KERNELS.get(arch, {}).get(kind))\n"
        "    if record is None or arch not in record.get('on', ()) or record.get('kind') != kind:\n"
        "        raise X\n",
        ("no", "yes", "no"),
        id="nothing is got of None",
    ),
    pytest.param(
        "UNITS = {\n    'a': {'stage': 'x', 'set': {'sm_100a': {'k': 1}}, 'on': ['sm_100a']},\n"
        "    'b': {'stage': 'y', 'set': {'sm_120a': {}}, 'on': ['sm_100a']},\n}\n"
        "def f(arch):\n    for unit in UNITS.values():\n        if unit['stage'] == 'x':\n"
        "            found = (unit.get('set') or {}).get(arch)\n"
        "            if found is None or any(key not in found for key in ('k',)):\n"
        "                raise X\n",
        ("no", "yes", "no"),
        id="the one entry of a kind",
    ),
    pytest.param(
        "PARTS = ('a', 'b')\nUNITS = {'u': {'arch': 'sm_100a', 'a': 1, 'b': 2}}\n"
        "def parts_of(name):\n    found = tuple(part for part in PARTS if part in UNITS[name])\n"
        "    if not found:\n        raise X\n    return found\n"
        "def unit(device):\n"
        "    arch = {(10, 0): 'sm_100a'}.get(torch.cuda.get_device_capability(device))\n"
        "    if arch is None:\n        raise X\n"
        "    names = [name for name, row in UNITS.items() if row['arch'] == arch]\n    return names[0]\n"
        "def arm(unit, parts, part, on):\n    return bool(on) and unit is not None and part in parts\n"
        "def run(backend, device, on):\n    name = None\n    if backend == 'own':\n"
        "        name = unit(device)\n"
        "    parts = parts_of(name) if name is not None else PARTS\n"
        "    if arm(name, parts, 'a', on):\n        return 1\n",
        ("no", "yes", "no"),
        id="a call is given one of two names",
    ),
    pytest.param(
        "MADE = {'a': {'on': ['sm_100a']}, 'b': {'on': ['sm_100a']}}\n"
        "def f(self, name):\n    record = None if name is None else MADE.get(name)\n"
        "    if record is not None and self.arch in record['on']:\n        return 1\n",
        ("no", "yes", "no"),
        id="a record, if one is asked for",
    ),
    pytest.param(
        "WINDOWS = {(10, 0): (1, 8)}\n"
        "def f(capability, n):\n    window = WINDOWS.get((int(capability[0]), int(capability[1])))\n"
        "    if window is None:\n        return False\n    least, most = window\n"
        "    return least <= n <= most\n",
        ("no", "yes", "no"),
        id="the two ends of a window, where there is one",
    ),
    pytest.param(
        "SIZES = {10: (256, 128), 11: (256, 128)}\n"
        "def f(device, *, capability_major=None):\n    if capability_major is None:\n"
        "        capability_major = torch.cuda.get_device_capability(device)[0]\n"
        "    found = SIZES.get(capability_major)\n    if found is None:\n        raise X\n",
        ("no", "yes", "no"),
        id="what a table gives for a capability that is asked for where it is not given",
    ),
    pytest.param(
        "GROUPS = ({'n': 8}, {'n': 16, 'on': ('sm_100a',)})\n"
        "def f(n, arch):\n    for row in GROUPS:\n        wanted = row.get('on')\n"
        "        if wanted is not None and n > 1:\n            if arch not in tuple(wanted):\n"
        "                continue\n        return row['n']\n",
        ("yes", "no", "yes"),
        id="a list that not all rows have is copied",
    ),
    pytest.param(
        "GROUPS = [{'n': 8, 'on': ['sm_100a']}, {'n': 16, 'on': ['sm_100a']}]\n"
        "def f(n, arch):\n    for place, row in enumerate(GROUPS):\n"
        "        if arch in row['on']:\n            return place\n",
        ("no", "yes", "no"),
        id="rows that are counted",
    ),
]


@pytest.mark.parametrize(("text", "expected"), PICKED)
def test_one_of_several_that_agree(text: str, expected: tuple[str, ...]) -> None:
    found = [one for one in gates(ROWS + text) if one.kind != "table"]
    said = {one.text: admitted(one).split() for one in found}
    assert said
    for archs in said.values():
        assert tuple("yes" if sm in archs else "no" for sm in ("90", "100", "120")) == expected


@pytest.mark.parametrize(
    "text",
    [
        "def f(row, arch):\n    return arch in row['on']\n",
        "def f(row, arch):\n    return arch in row['on']\ndef g(x, arch):\n    return f(x.row, arch)\n",
        "def f(row, arch):\n    row = row or ROWS['a']\n    return arch in row['on']\n",
        "def f(x, arch):\n    row = ROWS['a']\n    if x:\n        row = x\n    return arch in row['on']\n",
        "def f(arch):\n    row = ROWS['a']\n    row = row['n'] and row\n    return arch in row['on']\n",
        "def f(arch, kind):\n    return arch in {'a_on': ['sm_90a'], 'n': 3}[f'{kind}n']\n",
        "def f(row, arch):\n    return arch in row['on']\ndef g(arch, *rest):\n    return f(*rest)\n",
        "def f(arch):\n    for row in ROWS.values():\n        row = g(row)\n        if arch in row:\n            return 1\n",
    ],
)
def test_one_of_those_that_are_not_known_is_not_known(text: str) -> None:
    (found,) = gates(ROWS + text)
    assert found.unknown


def test_a_reason_is_told_by_its_two_ends(tmp_path: Path) -> None:
    names = ", ".join(f"part_{number}" for number in range(200))
    own = tmp_path / "own.py"
    own.write_text(f"def f(arch, {names}):\n    if arch in served({names}): pass\n")
    ((*_, reasons, _),) = Scanner(tmp_path).scan("own.py", str(own))["gates"]
    (reason,) = reasons
    assert len(reason) < 500
    assert reason.startswith("arch in served(part_0, part_1")
    assert reason.endswith("its meaning is not known")


def test_a_number_is_looked_for_in_the_name_that_a_function_gives() -> None:
    text = """
        import os, torch

        def token():
            chosen = os.environ.get("TARGET")
            if chosen:
                return chosen
            try:
                major, minor = torch.cuda.get_device_capability()
                return f"sm{major}{minor}"
            except Exception:
                return "unknown"

        def plan(rows):
            newest = "107" in token()
            if newest:
                return None
            return 1 if "103" in token() else 2
    """

    found = {one.text: one for one in gates(text)}

    assert found.keys() == {'"107" in token()', "newest", '"103" in token()'}
    whole = found['"103" in token()']
    assert not whole.verdict.unknown
    assert len({*whole.verdict.table.values()}) == 2


UNSET = """
def f(x, hc):
    one = other = None
    if x.is_cuda and (get_platform().is_sm100 or get_platform().is_sm90):
        one, other = hc.one, hc.other
    return other is not None and (get_platform().is_sm90 or x.size > 4096)
"""


def test_a_name_is_none_where_it_is_not_set() -> None:
    found = gates(UNSET)[-1]
    assert found.text.startswith("other is not None")
    assert not found.unknown
    assert admitted(found) == "90 100 103"


def test_a_name_that_is_set_whatever_the_device_is_free() -> None:
    found = gates(UNSET.replace("(get_platform().is_sm100 or get_platform().is_sm90)", "hc"))[-1]
    assert found.verdict.is_gate
    assert admitted(found) == " ".join(str(arch.sm) for arch in TABLE)


NAMED = {
    "pkg/tuning.py": b"""
KEYS = ("a", "b")
def is_valid_sm100_inner_knobs(knobs, config):
    return not set(knobs) - set(KEYS)
def is_valid_sm100_knobs(knobs, config):
    if config.kind == "inner":
        return is_valid_sm100_inner_knobs(knobs, config)
    return True
def is_valid_sm100_size(size):
    return size > 8 and torch.cuda.get_device_capability()[0] == untold(size)
"""
}


@pytest.mark.parametrize(
    ("name", "count"), [("is_valid_sm100_knobs", 0), ("is_valid_sm100_size", 1)]
)
def test_a_function_of_which_the_name_alone_speaks_is_no_gate(name: str, count: int) -> None:
    found = gates(
        "def g(k, config):\n    config = SM100Config(config)\n    config = h(config)\n"
        f"    from .tuning import {name}\n"
        f"    if not {name}(k.knobs{', config' * ('knobs' in name)}):\n        raise X\n",
        NAMED,
    )
    assert len(found) == count


def test_a_table_that_another_module_may_have_is_looked_up_by_the_architecture() -> None:
    found = gates(
        "from pkg import reg\nARCHS = {(9, 0): 'sm_90a', (10, 0): 'sm_100a'}\n"
        "def f(device, name, n):\n"
        "    arch = ARCHS.get(torch.cuda.get_device_capability(device))\n"
        "    heads = getattr(reg, 'HEADS', {})\n"
        "    if n in heads.get(arch, {}).get(name, {}):\n        return 1\n",
        {"pkg/reg.py": b"HEADS = {'sm_100a': {'m': {12: 'x'}}}\n"},
    )
    (gate,) = (one for one in found if one.text.startswith("n in"))
    assert not gate.unknown
    assert not isinstance(gate.verdict.table[Arch(10, 0)], bool)


KEYED = """
def plan_key(p, scale):
    return (p.rows, p.arch, float(scale))
def f(rec, p, scale):
    ok = rec.size == 4 and rec.key == plan_key(p, scale)
    if not ok:
        return None
    return rec
"""


def test_what_a_record_was_kept_under_is_no_gate() -> None:
    assert not gates(KEYED)


def test_another_field_beside_a_list_with_an_architecture_is_not_told() -> None:
    assert any(found.unknown for found in gates(KEYED.replace("rec.key", "rec.made")))
