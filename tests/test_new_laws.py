"""The law of `gatepatch new`: the set gives exactly the edited bytes, and lint is content."""

from __future__ import annotations

import ast
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import gatepatch
from gatepatch.environment import find_environment
from gatepatch.loader import load
from gatepatch.planner import plan_set
from gatepatch.workspace import Workspace
from releases import make_wheel
from trees import make_distribution, make_environment, site_of

MODULE = """\
# Kernels of a toy.
import torch
from toy.caps import is_sm90, is_sm100, is_sm120

_sm90 = is_sm90()
_sm100 = is_sm100()


def fused(batch: int) -> bool:
    if not (_sm90 or _sm100):
        return False
    return batch > 0 and (is_sm90() or is_sm100())


def check(major, minor):
    if major < 9:
        raise ValueError("SM 9.0 is needed")
    if major in (9, 10):
        return compile(supported_major_versions=[9, 10])
    return compile(supported_major_versions=[9, 10])


class Runner:
    fast = torch.cuda.get_device_capability()[0] == 10

    def run(self, major):
        if major == 10 and self.fast:
            return "fast, über"
        return "slow"
"""
CAPS = """\
import torch


def is_sm90():
    return torch.cuda.get_device_capability()[0] == 9


def is_sm100():
    return torch.cuda.get_device_capability()[0] == 10


def is_sm120():
    return torch.cuda.get_device_capability()[0] == 12


def is_sm89():
    return torch.cuda.get_device_capability() == (8, 9)
"""
HEADER = """\
#pragma once
#if (defined(__CUDA_ARCH__) && (__CUDA_ARCH__ >= 900) && (__CUDA_ARCH__ < 1200))
wait();
#endif
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < 1200
launch();
#else
#error "no"
#endif
#ifdef FAST
#if (defined(__CUDA_ARCH__) && (__CUDA_ARCH__ >= 900) && (__CUDA_ARCH__ < 1200))
wait();
#endif
#endif
"""
FILES = {
    "toy/__init__.py": "",
    "toy/caps.py": CAPS,
    "toy/kernels.py": MODULE,
    "toy/wait.cuh": HEADER,
    "toy/windows.cuh": HEADER.replace("\n", "\r\n"),
    "toy/notes.txt": "one\n\ntwo\n  two\none\n\nthree: 'x' \"y\" #\ttab \none\nlast",
}

# What people put in by hand; for the spots of a file whatever they are.
SWAPS = (
    ("[9, 10]", "[9, 10, 12]"),
    ("(9, 10)", "(9, 10, 12)"),
    ("_sm90 or _sm100", "_sm90 or _sm100 or is_sm120()"),
    ("is_sm90() or is_sm100()", "is_sm90() or is_sm100() or is_sm120()"),
    ("is_sm90() or is_sm100()", "(is_sm90() or\n            is_sm100() or is_sm120())"),
    ("is_sm90, is_sm100, is_sm120", "is_sm89, is_sm90, is_sm100, is_sm120"),
    ("major == 10", "major in (10, 12)"),
    ("major == 10", "(major == 10 or major == 12)"),
    ("_sm100 = is_sm100()\n", "_sm100 = is_sm100()\n_sm120 = is_sm100()  # new\n"),
    ("major < 9", "major < 8"),
    ("batch > 0", "batch > 1"),
    ("[0] == 10\n", "[0] in (10, 12)\n"),
    ("if not (_sm90 or _sm100):", "if not (_sm90 or _sm100 or is_sm120()):"),
    ("< 1200", "< 1300"),
    ("< 1200", "<= 1210"),
    (" && (__CUDA_ARCH__ < 1200)", ""),
    ("__CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < 1200", "__CUDA_ARCH__ >= 900"),
    ("FAST", "FASTER"),
    ("one", "uno"),
    ("wait();", "wait();\nwait();"),
    ("import torch\n", "import os\nimport torch\n"),
)
LINES = ("", "# a comment", "x = 1", "one", "  two", "wait();", "#endif", "ü: {}, 'a' \"b\" \\")


@st.composite
def edited(draw: st.DrawFn, path: str) -> bytes:
    """A file of the look-alike after a few edits by hand."""
    text = FILES[path]
    newline = "\r\n" if "\r\n" in text else "\n"
    for _ in range(draw(st.integers(1, 4))):
        spelt = [(o.replace("\n", newline), n.replace("\n", newline)) for o, n in SWAPS]
        swaps = [swap for swap in spelt if swap[0] in text]
        if swaps and draw(st.integers(0, 3)) > 0:
            old, new = draw(st.sampled_from(swaps))
            count = draw(st.sampled_from([-1, -1, *range(1, text.count(old) + 1)]))
            text = text.replace(old, new, count)
        else:
            lines = text.split(newline)
            at = draw(st.integers(0, len(lines) - 1))
            line = draw(st.sampled_from(LINES))
            lines[at : at + draw(st.integers(0, 2))] = [line] * draw(st.integers(0, 1))
            text = newline.join(lines)
    return text.encode()


@pytest.fixture(scope="module")
def prefix() -> Iterator[Path]:
    """An environment that is used again and again, with a wheel beside it."""
    with tempfile.TemporaryDirectory() as folder:
        prefix = make_environment(Path(folder))
        make_distribution(site_of(prefix), "toy", "1.0", FILES)
        make_wheel(Path(folder), "toy", "1.0", FILES)
        yield prefix


def put(prefix: Path, files: dict[str, bytes]) -> None:
    for path, content in FILES.items():
        (site_of(prefix) / path).write_bytes(files.get(path, content.encode()))


def parses(data: bytes) -> bool:
    try:
        ast.parse(data)
    except (SyntaxError, ValueError):
        return False
    return True


def made_by(prefix: Path, files: dict[str, bytes], wheels: Sequence[Path]) -> dict[str, bytes]:
    """What the set that is made of some edits makes of the pristine files."""
    output = prefix.parent / "sets"
    shutil.rmtree(output, ignore_errors=True)
    put(prefix, files)
    made = gatepatch.new(
        "mine",
        edits="toy",
        prefix=prefix,
        wheels=wheels,
        admit=["sm_120", "sm_121"],
        like="sm_100",
        output=output,
    )
    put(prefix, {})
    findings = gatepatch.lint("mine", patches=[output], prefix=prefix)
    assert [f for f in findings if f.message != "is to be filled in"] == []
    plan = plan_set(Workspace(find_environment(prefix=prefix)), load(Path(made.source)))
    return {file.name: file.after for file in plan.files}


@settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_the_set_gives_exactly_the_edited_bytes(prefix: Path, data: st.DataObject) -> None:
    paths = data.draw(st.sets(st.sampled_from(sorted(FILES)[1:]), min_size=1, max_size=2))
    files = {path: data.draw(edited(path), label=path) for path in sorted(paths)}
    files = {path: after for path, after in files.items() if after != FILES[path].encode()}
    assume(files)
    assume(all(parses(after) for path, after in files.items() if path.endswith(".py")))
    wheels = sorted(prefix.parent.glob("*.whl"))
    assert made_by(prefix, files, wheels) == files
