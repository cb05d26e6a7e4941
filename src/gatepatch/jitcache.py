"""FlashInfer's JIT cache: find a module's folders, hold its build lock, remove it.

``<base>/.cache/flashinfer/[<version>/]<arch>/cached_ops/<module>/``: the version from 0.4.1 on;
``<arch>`` is spelt in several ways and is matched, never computed. The base is
``$FLASHINFER_WORKSPACE_BASE`` or the home folder; SGLang sets it to its own cache from 0.5.18.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gatepatch.errors import LockTimeoutError, Problem

_OPS = ("cached_ops", "*/cached_ops", "*/*/cached_ops")
_IN_BASE = ".cache/flashinfer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """A module in a JIT cache.

    Args:
        kind: ``flashinfer``.
        name: Such as ``trtllm_comm``.
        folder: What its binaries lie in; it may not be there yet.
        lock: The lock that FlashInfer holds while it builds and loads it.
        newest_output: Nanoseconds: the latest mtime of what was built; 0 if nothing was.
    """

    kind: str
    name: str
    folder: Path
    lock: Path
    newest_output: int


def cache_roots(
    environment: Mapping[str, str] | None = None, extra: Sequence[Path] = ()
) -> tuple[Path, ...]:
    """The JIT cache roots that are there.

    Args:
        environment: Environment variables; those of this process by default.
        extra: More folders: a base, a ``.cache/flashinfer``, or any folder below it.
    """
    variables = os.environ if environment is None else environment
    home = Path(variables.get("HOME") or Path.home())
    bases = [
        Path(variables.get("FLASHINFER_WORKSPACE_BASE") or home),
        home,  # a server may run without the variable that this shell has
        Path(variables.get("SGLANG_CACHE_DIR") or home / ".cache" / "sglang"),
    ]
    found = [base / _IN_BASE for base in bases]
    for folder in extra:
        found += [folder / _IN_BASE, folder]
    real = (Path(os.path.realpath(folder)) for folder in found if folder.is_dir())
    return tuple(dict.fromkeys(real))


def find_modules(names: Mapping[str, Sequence[str]], roots: Sequence[Path]) -> tuple[Module, ...]:
    """Find modules by name in every version's and architecture's folder of some roots.

    A module whose first build is going on has a lock and no folder yet; it counts.
    """
    wanted = set(names.get("flashinfer", ()))
    return tuple(module for module in list_modules(roots) if module.name in wanted)


def known_modules(
    names: Mapping[str, Sequence[str]], extra: Sequence[Path] = ()
) -> tuple[Module, ...]:
    """Find modules by name in the roots that this process knows, and in those named."""
    return find_modules(names, cache_roots(extra=extra))


def list_modules(roots: Sequence[Path]) -> tuple[Module, ...]:
    """Every module in some roots."""
    found: dict[Path, Module] = {}
    for root in roots:
        for ops in _operations(root):
            for name in sorted(_names(ops)):
                folder = ops / name
                found[folder] = Module(
                    kind="flashinfer",
                    name=name,
                    folder=folder,
                    lock=ops / "tmp" / f"{name}.lock",
                    newest_output=_newest(folder),
                )
    return tuple(found[folder] for folder in sorted(found))


def _operations(root: Path) -> Iterator[Path]:
    if root.name == "cached_ops":
        yield root
    for pattern in _OPS:
        yield from (path for path in sorted(root.glob(pattern)) if path.is_dir())


def _names(ops: Path) -> set[str]:
    folders = {p.name for p in ops.iterdir() if p.is_dir() and not p.name.startswith(".")}
    locks = {p.stem for p in (ops / "tmp").glob("*.lock")}
    return (folders - {"tmp"}) | (locks - {"flashinfer_jit"})


def _newest(folder: Path) -> int:
    newest = 0
    for path in folder.rglob("*") if folder.is_dir() else ():
        with contextlib.suppress(FileNotFoundError):  # a build may be going on
            newest = max(newest, path.stat().st_mtime_ns)
    return newest


@contextlib.contextmanager
def hold(modules: Sequence[Module], timeout: float) -> Iterator[None]:
    """Hold the modules' own build locks: a source that changes while it is compiled stays stale.

    Args:
        modules: In whatever order; the locks are taken in a fixed one.
        timeout: Seconds to wait for all of them together.

    Raises:
        LockTimeoutError: A build is going on, or a process hangs in one.
    """
    from filelock import FileLock, Timeout

    deadline = time.monotonic() + timeout
    with contextlib.ExitStack() as stack:
        for module in sorted(modules, key=lambda m: m.lock):
            module.lock.parent.mkdir(parents=True, exist_ok=True)
            try:
                left = max(0.0, deadline - time.monotonic())
                stack.enter_context(FileLock(module.lock, timeout=left, poll_interval=0.05))
            except Timeout:
                raise LockTimeoutError(
                    Problem(
                        message=f"{module.name} is being built or loaded by another process, "
                        f"and was not free within {timeout:g} s",
                        where=str(module.lock),
                        hint=f"see which: fuser {module.lock}; wait for it, or stop the server",
                    )
                ) from None
        yield


def remove(modules: Sequence[Module]) -> tuple[Path, ...]:
    """Remove modules' folders: renamed first, so that none is ever seen half removed.

    Call it under ``hold``.

    Returns:
        The folders that were there and are gone.
    """
    removed = []
    for module in modules:
        aside = module.folder.with_name(f".{module.name}.gatepatch-{os.getpid()}")
        try:
            module.folder.rename(aside)
        except FileNotFoundError:
            continue
        shutil.rmtree(aside, ignore_errors=True)
        removed.append(module.folder)
    return tuple(removed)
