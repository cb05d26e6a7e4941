"""FlashInfer's JIT cache: find a module's folders, hold its build lock, remove it.

``<base>/.cache/flashinfer/[<version>/]<arch>/cached_ops/<module>/``: the version from 0.4.1 on;
``<arch>`` is spelt in several ways and is matched, never computed. The base is
``$FLASHINFER_WORKSPACE_BASE`` or the home folder; SGLang sets it to its own cache from 0.5.18.
"""

from __future__ import annotations

import contextlib
import errno
import glob
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from gatepatch.errors import LockTimeoutError, Problem, UsageError
from gatepatch.records import dataclass, field

_OPS = ("cached_ops", "*/cached_ops", "*/*/cached_ops")
_IN_BASE = ".cache/flashinfer"
_BATCH = "flashinfer_jit"
"""Names the lock of ``build_jit_specs``, which builds many modules without their own locks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """A module in a JIT cache.

    Args:
        kind: ``flashinfer``.
        name: Such as ``trtllm_comm``.
        folder: What its binaries lie in; it may not be there yet.
        lock: The lock that FlashInfer holds while it builds and loads it.
        newest_output: Nanoseconds: the latest mtime of what was built; 0 if nothing was.
        size: Bytes, of all that lies in the folder.
    """

    kind: str
    name: str
    folder: Path
    lock: Path
    newest_output: int
    size: int = field(default=0, compare=False)

    @property
    def architectures(self) -> str:
        """The folder's name for what it is built for, such as ``120f`` or ``90a_100a``."""
        return self.folder.parents[1].name


def cache_roots(
    environment: Mapping[str, str] | None = None, extra: Sequence[Path] = ()
) -> tuple[Path, ...]:
    """The JIT cache roots that are there.

    Args:
        environment: Environment variables; those of this process by default.
        extra: More folders: a base, a ``.cache/flashinfer``, or any folder below it down to
            ``cached_ops``.

    Raises:
        UsageError: One of ``extra`` is no folder.
    """
    variables = os.environ if environment is None else environment
    home = Path(variables.get("HOME") or os.path.expanduser("~"))  # noqa: PTH111, Path.home raises
    bases = [
        Path(variables.get("FLASHINFER_WORKSPACE_BASE") or home),
        Path(os.path.expanduser(variables.get("SGLANG_CACHE_DIR") or home)),  # noqa: PTH111, as SGLang does
        # A server may run without the variables that this shell has.
        home,
        home / ".cache" / "sglang",
    ]
    found = [base / _IN_BASE for base in bases]
    for folder in extra:
        if not os.path.isdir(folder):  # noqa: PTH112, see below
            raise UsageError(
                Problem(
                    message="no such folder, or it cannot be read", where=f"--jit-root {folder}"
                )
            )
        found += [folder / _IN_BASE, folder]
    # Another user's home may be closed to this one: there Path.is_dir raises.
    there = (folder for folder in found if os.path.isdir(folder))  # noqa: PTH112
    return tuple(dict.fromkeys(Path(os.path.realpath(folder)) for folder in there))


def find_modules(names: Mapping[str, Sequence[str]], roots: Sequence[Path]) -> tuple[Module, ...]:
    """Find modules by name in every version's and architecture's folder of some roots.

    A module that is not built yet counts too: its first build may begin at any time, and its lock
    has to be held as well.
    """
    wanted = frozenset(names.get("flashinfer", ()))
    return tuple(_modules(roots, wanted)) if wanted else ()


def union(names: Iterable[Mapping[str, Sequence[str]]]) -> dict[str, tuple[str, ...]]:
    """Several mappings of cache kind to module names as one, each name once."""
    found: dict[str, tuple[str, ...]] = {}
    for each in names:
        for kind, own in each.items():
            found[kind] = tuple(dict.fromkeys((*found.get(kind, ()), *own)))
    return found


def known_modules(
    names: Mapping[str, Sequence[str]], extra: Sequence[Path] = ()
) -> tuple[Module, ...]:
    """Find modules by name in the roots that this process knows, and in those named."""
    return find_modules(names, cache_roots(extra=extra))


def list_modules(roots: Sequence[Path]) -> tuple[Module, ...]:
    """Every module in some roots."""
    return tuple(_modules(roots, None))


def _modules(roots: Sequence[Path], wanted: frozenset[str] | None) -> Iterator[Module]:
    # Resolved: one lock that is reached in two ways cannot be held twice.
    folders = {Path(os.path.realpath(ops)) for root in roots for ops in _operations(root)}
    for ops in sorted(folders):
        names = _names(ops)
        if wanted is not None:
            names = {name for name in wanted if name in names or os.access(ops, os.W_OK)}
        for name in sorted(names):
            newest, size = _built(ops / name)
            yield Module(
                kind="flashinfer",
                name=name,
                folder=ops / name,
                lock=ops / "tmp" / f"{name}.lock",
                newest_output=newest,
                size=size,
            )


def _operations(root: Path) -> Iterator[Path]:
    if root.name == "cached_ops":
        yield root
    for pattern in _OPS:
        # One that is closed to this user is like one that is not known: Path.iterdir raises.
        yield from (path for path in root.glob(pattern) if os.access(path, os.R_OK | os.X_OK))


def _names(ops: Path) -> set[str]:
    if not ops.is_dir():
        return set()
    folders = {p.name for p in ops.iterdir() if p.is_dir() and not p.name.startswith(".")}
    locks = {p.stem for p in (ops / "tmp").glob("*.lock")}
    return (folders - {"tmp"}) | (locks - {_BATCH})


def _built(folder: Path) -> tuple[int, int]:
    """The latest mtime in a folder, and the bytes of what lies in it."""
    newest = size = 0
    for parent, _, names in os.walk(folder):  # Path.rglob raises where a folder goes meanwhile
        for name in names:
            with contextlib.suppress(FileNotFoundError):  # a build may be going on
                found = Path(parent, name).stat()
                newest, size = max(newest, found.st_mtime_ns), size + found.st_size
    return newest, size


@contextlib.contextmanager
def hold(modules: Sequence[Module], timeout: float) -> Iterator[None]:
    """Hold the modules' own build locks: a source that changes while it is compiled stays stale.

    Args:
        modules: In whatever order; the locks are taken in a fixed one.
        timeout: Seconds to wait for all of them together.

    Raises:
        LockTimeoutError: A build is going on, or a process hangs in one.
    """
    if not modules:
        yield
        return
    from filelock import FileLock, Timeout

    deadline = time.monotonic() + timeout
    with contextlib.ExitStack() as stack:
        for lock in sorted({lock for module in modules for lock in _locks(module)}):
            lock.parent.mkdir(parents=True, exist_ok=True)
            left = max(0.0, deadline - time.monotonic())
            try:
                # Not in the constructor: filelock 3.12 does not know the interval there.
                stack.enter_context(FileLock(lock).acquire(timeout=left, poll_interval=0.05))
            except Timeout:
                raise LockTimeoutError(_held(lock, timeout)) from None
            _hand_over(lock)
        yield


def _locks(module: Module) -> tuple[Path, Path]:
    return module.lock, module.lock.with_name(f"{_BATCH}.lock")


def _held(lock: Path, timeout: float) -> Problem:
    what = "a batch of modules" if lock.stem == _BATCH else lock.stem
    return Problem(
        message=f"{what} is being built or loaded by another process, "
        f"and was not free within {timeout:g} s",
        where=str(lock),
        hint=f"see which: fuser -v {lock}; wait for it, allow more time, or stop the server",
    )


def _hand_over(lock: Path) -> None:
    """Give a lock that root has made to the cache's owner, whose builds must open it."""
    owner = lock.parents[1].stat()
    for path in (lock.parent, lock):
        now = path.stat()
        if os.geteuid() == 0 and now.st_uid == 0 and owner.st_uid != 0:
            os.chown(path, owner.st_uid, owner.st_gid)


def remove(modules: Sequence[Module]) -> tuple[Path, ...]:
    """Remove modules' folders: renamed first, so that none is ever seen half removed.

    Call it under ``hold``.

    Returns:
        The folders that were there and are gone.
    """
    removed = []
    for module in modules:
        stem = f".{module.name}.gatepatch-"
        if os.path.lexists(module.folder):
            _move(module.folder, module.folder.with_name(f"{stem}{os.urandom(4).hex()}"))
            removed.append(module.folder)
        # What a process left that was killed here as well.
        for aside in module.folder.parent.glob(f"{glob.escape(stem)}*"):
            if aside.is_symlink():
                aside.unlink()
            else:
                _remove_tree(aside, ignore_errors=True)
    return tuple(removed)


def _move(folder: Path, aside: Path) -> None:
    """Rename a folder; where that cannot be, remove its binaries, and then the rest.

    An overlay file system refuses to rename a folder that came with the image (EXDEV), and a
    folder without its binaries is built again like one that is not there.
    """
    try:
        folder.rename(aside)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        for binary in folder.glob("*.so"):
            binary.unlink()
        _remove_tree(folder)


def _remove_tree(folder: Path, *, ignore_errors: bool = False) -> None:
    import shutil  # costs 3 ms, and a cache may be empty

    shutil.rmtree(folder, ignore_errors=ignore_errors)
