"""Programs that optional parts need: nothing here is a problem."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Iterator

from packaging.version import Version

from gatepatch.doctoring.check import Check
from gatepatch.doctoring.subject import Subject
from gatepatch.errors import TargetError
from gatepatch.trials import compiler_cache
from gatepatch.verifying import nvcc
from gatepatch.verifying.obstacles import FLASHINFER


def tools(subject: Subject) -> Iterator[Check]:
    """The compiler, git, power measurement and a compiler cache."""
    yield _nvcc()
    git = shutil.which("git")
    yield Check(
        name="git",
        outcome="ok" if git else "note",
        found=git or "not installed: nothing vouches for the files of an editable checkout",
    )
    nvml = importlib.util.find_spec("pynvml") is not None
    yield Check(
        name="nvml",
        outcome="ok" if nvml else "note",
        found="installed" if nvml else "not installed: gatepatch trial measures no power",
        next=None if nvml else 'pip install "gatepatch[nvml]"',
    )
    if (flashinfer := subject.targets.get(FLASHINFER)) is not None:
        yield _compiler_cache(Version(flashinfer.version))


def _nvcc() -> Check:
    try:
        found = nvcc.find()
    except TargetError as error:
        (problem,) = error.problems
        return Check(
            name="nvcc",
            outcome="note",
            found=f"gatepatch verify --compile cannot: {problem.message}",
            next=problem.hint,
        )
    words = f"CUDA {found.release}, {' '.join(found.command)}"
    return Check(name="nvcc", outcome="ok", found=words)


def _compiler_cache(version: Version) -> Check:
    through = compiler_cache.choose(version, os.environ)
    if through.words:
        return Check(name="sccache", outcome="ok", found=f"gatepatch trial sets {through.words}")
    found, _, command = through.note.partition(": ")
    return Check(name="sccache", outcome="note", found=found, next=command or None)
