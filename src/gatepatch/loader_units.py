"""Read from YAML what a set expects of a compiler."""

from __future__ import annotations

import re
from typing import cast

from gatepatch.arch import Arch
from gatepatch.document import Cursor
from gatepatch.spec import Amount, Expectation, UnitSpec

COMPILED = "flashinfer-python"
"""The distribution whose build flags are known."""

DATA = "flashinfer/data/"
"""The folder of the sources that its JIT compiles."""

_OPCODE = re.compile(r"[a-z][a-z0-9_]*(\.[a-z0-9_:]+)*")


def read_units(cursor: Cursor, distribution: str, like: Arch | None) -> tuple[UnitSpec, ...]:
    """Read ``compile:``, a list of translation units.

    Args:
        cursor: The list.
        distribution: Whose block it stands in.
        like: The set's ``like``; None for a set that has none.
    """
    if distribution and distribution != COMPILED:
        cursor.error(f"it is not known how {distribution} compiles: this is for {COMPILED}")
    return tuple(_unit(item, like) for item in cursor.sequence())


def _unit(cursor: Cursor, like: Arch | None) -> UnitSpec:
    keys = cursor.mapping(required=("unit", "expect"))
    path = read_path(keys["unit"]) if "unit" in keys else ""
    if path and not (path.startswith(DATA) and path.endswith(".cu")):
        keys["unit"].error(
            f"{path!r} is no unit that FlashInfer compiles",
            f"write one such as {DATA}csrc/trtllm_allreduce.cu",
        )
    expect = keys["expect"].sequence() if "expect" in keys else []
    return UnitSpec(
        where=cursor.path, path=path, expect=tuple(_expectation(item, like) for item in expect)
    )


def _expectation(cursor: Cursor, like: Arch | None) -> Expectation:
    keys = cursor.mapping(keys=("instruction", "kernels", "before", "after"))
    if ("instruction" in keys) == ("kernels" in keys):
        cursor.error("expected one of instruction and kernels")
    if not {"before", "after"} & keys.keys():
        cursor.error("expected before, after, or both: none, some or as-like")
    if "kernels" in keys:
        keys["kernels"].choice("empty")
    instruction = keys["instruction"].text() if "instruction" in keys else None
    if instruction and not _OPCODE.fullmatch(instruction):
        keys["instruction"].error(
            f"{instruction!r} is no PTX opcode", "write one such as griddepcontrol"
        )
    return Expectation(
        where=cursor.path,
        instruction=instruction,
        before=_amount(keys["before"], like) if "before" in keys else None,
        after=_amount(keys["after"], like) if "after" in keys else None,
    )


def _amount(cursor: Cursor, like: Arch | None) -> Amount:
    word = cursor.choice("none", "some", "as-like")
    if word == "as-like" and like is None:
        cursor.error("as-like needs a set with like", "write none or some")
    return cast(Amount, word or "none")


def read_path(cursor: Cursor) -> str:
    """Read a path inside a distribution."""
    path = cursor.text()
    if path.startswith("/") or "\\" in path or any(p in ("", ".", "..") for p in path.split("/")):
        cursor.error(
            f"{path!r} is no path inside a distribution",
            "write it from where the package is imported, such as sglang/srt/server_args.py",
        )
    return path
