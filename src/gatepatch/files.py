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
from collections.abc import Iterator
from pathlib import Path

from gatepatch.records import dataclass

MTIME_STEP = 1_000_000_000
"""Nanoseconds by which a written source is newer than anything built from what stood there."""

_HASHED_ATTRIBUTES = ("security.ima", "security.evm")
"""Attributes that vouch for the old content: on the new content they would make it unreadable."""


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
    data = read(path)
    if data is None:
        return None
    link = os.readlink(path) if path.is_symlink() else None  # noqa: PTH115, Path normalises it
    return Image(sha256=hashlib.sha256(data).hexdigest(), link=link)


def read(path: Path) -> bytes | None:
    """The bytes of a file; None if there is none."""
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None


def write_new(path: Path, data: bytes) -> None:
    """Create a file of gatepatch's own, durably; an existing one is replaced at once."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with _naming(path), temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def stage(
    path: Path, staged: Path, data: bytes, *, link: str | None = None, newer_than: int = 0
) -> None:
    """Write a file's next content beside it, with its mode, owner and extended attributes.

    The mtime is later than now, than the old one and than ``newer_than`` (nanoseconds): ninja
    calls a binary up to date over changed content with an older mtime.

    Args:
        path: The file that is to be replaced.
        staged: Where to write; nothing stands there.
        data: The content.
        link: Make this symlink instead, unless the content behind it is no longer ``data``,
            as when an installer's cache was cleaned.
        newer_than: Nanoseconds; see above.
    """
    if link is not None and read(path.parent / link) == data:
        staged.symlink_to(link)
        return
    old = path.stat()
    descriptor = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with _naming(path), os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        new = os.fstat(descriptor)
        # chown clears the set-user-ID bits, so mode comes after it.
        if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
            os.fchown(descriptor, old.st_uid, old.st_gid)
        os.fchmod(descriptor, stat.S_IMODE(old.st_mode))
        _copy_attributes(path, descriptor)
        mtime = max(time.time_ns(), old.st_mtime_ns, newer_than) + MTIME_STEP
        os.utime(descriptor, ns=(mtime, mtime))
        os.fsync(descriptor)


def remove(path: Path) -> None:
    """Remove a file or a link, if it is there.

    A read-only file system refuses to unlink even what does not exist.
    """
    if os.path.lexists(path):
        path.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable; some network file systems refuse, and are let be."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _copy_attributes(path: Path, descriptor: int) -> None:
    try:
        names = os.listxattr(path)
    except OSError as error:
        if error.errno in (errno.ENOTSUP, errno.ENOSYS):
            return
        raise
    for name in names:
        if name in _HASHED_ATTRIBUTES:
            continue
        try:
            os.setxattr(descriptor, name, os.getxattr(path, name))
        except PermissionError:
            # Only root may set some labels, and the kernel labels the new file by itself.
            if name.startswith("user."):
                raise


@contextlib.contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Name the file in errors of calls that only know a descriptor, such as a full device."""
    try:
        yield
    except OSError as error:
        error.filename = str(path)
        raise
