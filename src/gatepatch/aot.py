"""What FlashInfer loads or compiles in place of the installed sources: prebuilt (AOT) modules.

It asks whether ``<module>/<module>.so`` exists, and not what it was built from. Source:
``flashinfer/jit/env.py`` and ``JitSpec`` in ``flashinfer/jit/core.py``, 0.3.1 to 0.7.4.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from gatepatch.environment import Environment
from gatepatch.records import dataclass
from gatepatch.target import Root, Target

HIDDEN = ".gatepatch-hidden"
_IN_FLASHINFER = "flashinfer/data/aot"
_IN_CACHE_PACKAGE = "jit_cache"


@dataclass(frozen=True, slots=True, kw_only=True)
class AotBinary:
    """A prebuilt module that would be loaded.

    Args:
        module: Its name, such as ``trtllm_comm``.
        root: What it lies under: a site folder, or the checkout of an editable install.
        path: The file, relative to the root. Its folder cannot be renamed where it came with an
            image: an overlay file system refuses (EXDEV).
        hidden: What it is renamed to when it is hidden, relative to the root.
    """

    module: str
    root: Root
    path: str
    hidden: str


def find_aot(
    environment: Environment, flashinfer: Target | None, names: Mapping[str, Sequence[str]]
) -> tuple[AotBinary, ...]:
    """Find the prebuilt binaries of some modules.

    They lie in FlashInfer's own package, or in ``flashinfer_jit_cache``, and from 0.7.0 in the
    packages that this one knows, ``flashinfer_jit_cache_…``. Which of them wins, and whether it
    has code for a device, differs between releases; all that could be loaded are found.

    Args:
        environment: Where to look.
        flashinfer: FlashInfer itself; None if it is not installed.
        names: Cache kind to module names.

    Raises:
        TargetError: FlashInfer's prebuilt modules lie outside its root.
    """
    wanted = names.get("flashinfer", ())
    packages = _cache_packages(environment) if wanted else ()
    return tuple(
        binary for name in wanted for binary in (*_in(flashinfer, name), *_among(packages, name))
    )


def compiled_elsewhere(flashinfer: Target) -> Path | None:
    """The folder of the sources that FlashInfer compiles, if they are not the installed ones.

    It finds them from where ``flashinfer/jit/env.py`` really lies. Where each file is a link into
    an installer's cache (uv's link mode ``symlink``), that is the cache, seen with uv 0.13.
    """
    module = flashinfer.locate("flashinfer/jit/env.py")
    real = Path(os.path.realpath(module))
    return None if real == module else real.parents[1]


def _in(flashinfer: Target | None, name: str) -> Iterator[AotBinary]:
    if flashinfer is not None:
        binary = flashinfer.locate(f"{_IN_FLASHINFER}/{name}/{name}.so")
        if binary.exists():
            yield _binary(flashinfer.root, binary, name)


def _among(packages: Sequence[Path], name: str) -> Iterator[AotBinary]:
    for package in packages:
        binary = package / _IN_CACHE_PACKAGE / name / f"{name}.so"
        if binary.exists():
            site = Path(os.path.realpath(package.parent))
            root = Root(path=site, state_dir=site / ".gatepatch", kind="site", repository=False)
            yield _binary(root, site / binary.relative_to(package.parent), name)


def _binary(root: Root, file: Path, name: str) -> AotBinary:
    path = file.relative_to(root.path).as_posix()
    return AotBinary(module=name, root=root, path=path, hidden=path + HIDDEN)


def _cache_packages(environment: Environment) -> tuple[Path, ...]:
    """The packages of prebuilt modules; of several copies, the one that is imported."""
    found: dict[str, Path] = {}
    for folder in environment.paths:
        for package in sorted(folder.glob("flashinfer_jit_cache*")):
            if os.path.isdir(package / _IN_CACHE_PACKAGE):  # noqa: PTH112, may not be readable
                found.setdefault(package.name, package)
    return tuple(found.values())
