"""A small tree with every kind of file that is patched, and the change and its inverse."""

from __future__ import annotations

import os
from pathlib import Path

from gatepatch.jitcache import Module
from gatepatch.target import Root
from gatepatch.transaction import Rename, RootChange, Transaction, Write, image

FILES = {
    "pkg/a.py": (b"old a\n", b"new a\n"),
    "pkg/sub/b.cuh": (b"old b\r\n", b"new, longer b\r\n"),
    "pkg/linked.py": (b"old linked\n", b"new linked\n"),
}
STATE = b'{"schema": 1}\n'


def make_root(folder: Path, name: str = "site") -> Root:
    """Make a tree: a hard link and a symlink into a cache, bytecode, a prebuilt module."""
    path = folder / name
    (path / "pkg/sub").mkdir(parents=True)
    (path / "pkg/data/aot/mod").mkdir(parents=True)
    (path / "pkg/data/aot/mod/mod.so").write_bytes(b"binary")
    (path / "pkg/__pycache__").mkdir()
    (path / "pkg/__pycache__/a.cpython-311.pyc").write_bytes(b"stale")
    cache = folder / f"cache-{name}"
    cache.mkdir()
    (path / "pkg/other.py").write_bytes(b"not touched\n")
    for file, (before, _) in FILES.items():
        cached = cache / Path(file).name
        cached.write_bytes(before)
        os.utime(cached, ns=(10**18, 10**18))
        if file == "pkg/linked.py":
            (path / file).symlink_to(f"../../cache-{name}/linked.py")
        else:
            os.link(cached, path / file)  # as uv does
    (path / "pkg/a.py").chmod(0o755)
    return root_of(path)


def root_of(path: Path) -> Root:
    """A site-packages."""
    return Root(path=path, state_dir=path / ".gatepatch", kind="site", repository=False)


def make_module(folder: Path) -> Module:
    """Make a built JIT module."""
    module = folder / "cached_ops" / "mod"
    module.mkdir(parents=True)
    (module / "mod.so").write_bytes(b"built")
    lock = module.parent / "tmp" / "mod.lock"
    lock.parent.mkdir()
    return Module(kind="flashinfer", name="mod", folder=module, lock=lock, newest_output=0)


def forward(*roots: Root, jit: tuple[Module, ...] = ()) -> Transaction:
    """Apply everywhere, from nothing."""
    return Transaction(changes=tuple(map(forward_of, roots)), jit=jit)


def forward_of(root: Root) -> RootChange:
    """Apply in one root."""
    return RootChange(
        root=root,
        writes=tuple(_write(root, file, after) for file, (_, after) in FILES.items()),
        renames=(Rename(source="pkg/data/aot/mod", destination="pkg/data/aot/mod.hidden"),),
        blobs=tuple(before for before, _ in FILES.values()),
        state=STATE,
        state_before=None,
    )


def backward(*roots: Root) -> Transaction:
    """Take it back everywhere."""
    return Transaction(changes=tuple(map(backward_of, roots)))


def backward_of(root: Root) -> RootChange:
    """Take it back in one root."""
    link = f"../../cache-{root.path.name}/linked.py"
    return RootChange(
        root=root,
        writes=tuple(
            _write(root, file, before, link if file == "pkg/linked.py" else None)
            for file, (before, _) in FILES.items()
        ),
        renames=(Rename(source="pkg/data/aot/mod.hidden", destination="pkg/data/aot/mod"),),
        state=None,
        state_before=STATE,
    )


def _write(root: Root, path: str, after: bytes, link: str | None = None) -> Write:
    before = image(root.path / path)
    assert before is not None
    return Write(path=path, before=before, after=after, link=link)


def mtimes(root: Root) -> dict[str, int]:
    """The mtimes of the files, in nanoseconds."""
    return {file: (root.path / file).stat().st_mtime_ns for file in FILES}
