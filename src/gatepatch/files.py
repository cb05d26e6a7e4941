"""Whole-file steps that are safe in a tree of installed files.

No installed file is ever opened for writing: uv and conda hard-link installed files into a
shared cache, and an edit in place would change every other environment.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
import time
from dataclasses import dataclass
from pathlib import Path

MTIME_STEP = 1_000_000_000
"""Nanoseconds by which a written source is newer than anything built from what stood there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """What stands at a path.

    Args:
        sha256: Of the content, behind the link if it is one.
        link: The text of the symlink; None for a regular file.
    """

    sha256: str
    link: str | None = None


def image(path: Path) -> Image | None:
    """Look at a file; None if there is none."""
    try:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return Image(sha256=digest, link=os.readlink(path) if path.is_symlink() else None)


def write_new(path: Path, data: bytes) -> None:
    """Create a file of gatepatch's own, durably; an existing one is replaced at once."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def stage(path: Path, staged: Path, data: bytes, *, newer_than: int = 0) -> None:
    """Write a file's next content beside it, with its mode, owner and extended attributes.

    The mtime is later than now, than the old one and than ``newer_than`` (nanoseconds): ninja
    calls a binary up to date over changed content with an older mtime.
    """
    old = path.stat()
    descriptor = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        # chown clears the set-user-ID bits, so mode comes after it.
        if (old.st_uid, old.st_gid) != (os.geteuid(), os.fstat(descriptor).st_gid):
            os.chown(descriptor, old.st_uid, old.st_gid)
        os.chmod(descriptor, stat.S_IMODE(old.st_mode))
        for name in _xattrs(path):
            os.setxattr(descriptor, name, os.getxattr(path, name))
        mtime = max(time.time_ns(), old.st_mtime_ns, newer_than) + MTIME_STEP
        os.utime(descriptor, ns=(mtime, mtime))
        os.fsync(descriptor)


def stage_link(staged: Path, text: str) -> None:
    """Make a symlink beside its place."""
    os.symlink(text, staged)


def _xattrs(path: Path) -> list[str]:
    try:
        return os.listxattr(path)
    except OSError as error:
        if error.errno in (errno.ENOTSUP, errno.ENOSYS):
            return []
        raise


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with contextlib.suppress(OSError):  # some network file systems refuse it
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
