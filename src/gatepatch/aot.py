"""Prebuilt (AOT) modules, which FlashInfer loads instead of compiling the installed sources."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gatepatch.environment import Environment

_FOLDERS = (
    "flashinfer_jit_cache/jit_cache",  # the package flashinfer-jit-cache
    "flashinfer/data/aot",  # a build of FlashInfer with its kernels in it
)
HIDDEN = ".gatepatch-hidden"


@dataclass(frozen=True, slots=True, kw_only=True)
class AotBinary:
    """A prebuilt module that would be loaded.

    Args:
        module: Its name, such as ``trtllm_comm``.
        root: The site folder that it lies in.
        path: Its folder, relative to the root.
        hidden: Where it is moved to when it is hidden, relative to the root.
    """

    module: str
    root: Path
    path: str
    hidden: str


def find_aot(environment: Environment, names: Mapping[str, Sequence[str]]) -> tuple[AotBinary, ...]:
    """Find the prebuilt binaries of some modules.

    FlashInfer looks for ``<module>/<module>.so`` and asks neither for its sources nor, before
    0.7.0, for its architecture.

    Args:
        environment: Where to look.
        names: Cache kind to module names.
    """
    return tuple(
        binary
        for folder in environment.paths
        for name in names.get("flashinfer", ())
        for binary in _in(Path(os.path.realpath(folder)), name)
    )


def _in(root: Path, name: str) -> Iterator[AotBinary]:
    for folder in _FOLDERS:
        if (root / folder / name / f"{name}.so").exists():
            path = f"{folder}/{name}"
            yield AotBinary(module=name, root=root, path=path, hidden=path + HIDDEN)
