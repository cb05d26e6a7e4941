"""Witnesses: what is known of a file's pristine bytes without gatepatch's own state."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from gatepatch.edits import sha256
from gatepatch.errors import Problem, TargetError
from gatepatch.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """What vouches for a file's pristine bytes.

    Args:
        kind: ``record`` for the hash in RECORD, ``git`` for the blob in HEAD.
        sha256: Of the pristine bytes. Where RECORD has another algorithm and the present bytes
            do not fit, ``algorithm:hex``, which equals no SHA-256.
        read: Returns them; None where only the hash is known.
    """

    kind: Literal["record", "git"]
    sha256: str
    read: Callable[[], bytes] | None = None


def record_witness(metadata: Path, name: str, path: Path) -> Witness | None:
    """The hash that RECORD has of a file.

    Args:
        metadata: The distribution's ``.dist-info``.
        name: The file's path as RECORD has it.
        path: The file.
    """
    import base64
    import hashlib

    try:
        data = (metadata / "RECORD").read_bytes()
    except OSError:
        return None
    algorithm, _, digest = _record_entry(data, name).partition("=")
    try:
        wanted = base64.urlsafe_b64decode(digest + "=" * (-len(digest) % 4))
        hasher = hashlib.new(algorithm)
    except ValueError:
        return None
    if not digest or len(wanted) != hasher.digest_size:
        return None
    if algorithm == "sha256":
        return Witness(kind="record", sha256=wanted.hex())
    # Another algorithm says whether the bytes are pristine, not what their SHA-256 is.
    try:
        current = path.read_bytes()
    except OSError:
        current = b""
    hasher.update(current)
    same = hasher.digest() == wanted
    return Witness(kind="record", sha256=sha256(current) if same else f"{algorithm}:{wanted.hex()}")


def _record_entry(data: bytes, wanted: str) -> str:
    """The hash field of one file; a search, since some RECORDs have tens of thousands of lines."""
    name = wanted.encode("utf-8", "surrogateescape")
    if data.startswith(name + b","):
        start = 0
    elif (found := data.find(b"\n" + name + b",")) >= 0:
        start = found + 1
    else:
        return _quoted_entry(data, wanted)
    end = data.find(b"\n", start)
    line = data[start : end if end >= 0 else len(data)]
    return line[len(name) + 1 :].split(b",")[0].decode("ascii", "replace").strip()


def _quoted_entry(data: bytes, wanted: str) -> str:
    """The same for a name in quotes, as it is with a comma or a quote in it."""
    if b'"' in data:
        import csv

        for row in csv.reader(data.decode("utf-8", "surrogateescape").splitlines()):
            if len(row) >= 2 and row[0] == wanted:
                return row[1]
    return ""


def git_folder(folder: Path) -> tuple[Path, Path] | None:
    """The top of the work tree that a folder lies in, and its git folder; None outside any.

    A ``.git`` that leads nowhere counts as none, as where a checkout was copied into an image
    without the repository that its worktree belongs to.
    """
    for top in (folder, *folder.parents):
        entry = top / ".git"
        if entry.is_file():  # a worktree, or a submodule
            text = entry.read_text("utf-8", "surrogateescape")
            if not text.startswith("gitdir:"):
                continue
            entry = top / text.partition(":")[2].strip()
        if (entry / "HEAD").exists():
            return top, Path(os.path.realpath(entry))
    return None


def git_witness(toplevel: Path, relative: str) -> Witness | None:
    """The blob of a file in HEAD, as git would check it out; None if git does not track it.

    A tracked symlink counts as what stands behind it, if that is tracked too.

    Raises:
        TargetError: Git will not read the repository, as where another user owns it.
    """
    for _ in range(8):  # links that lead to links, and no further than that
        line = _git(toplevel, "ls-tree", "-z", "HEAD", "--", relative)
        mode, kind, blob = (line or b"").partition(b"\t")[0].decode().split() or ("", "", "")
        if kind != "blob":  # untracked, a folder, a submodule
            return None
        if mode != "120000":
            break
        text = os.fsdecode(_git(toplevel, "cat-file", "blob", blob) or b"")
        relative = os.path.normpath(Path(relative).parent / text)
        if not text or Path(relative).parts[:1] in (("/",), ("..",)):
            return None
    else:
        return None
    # The filters give the work tree's bytes: line ends (autocrlf), encodings, LFS.
    data = _git(toplevel, "cat-file", "--filters", f"--path={relative}", blob)
    if data is None:
        return None
    return Witness(kind="git", sha256=sha256(data), read=lambda: data)


def git_changed(toplevel: Path) -> tuple[str, ...]:
    """The tracked files of a work tree whose content is not HEAD's, relative to its top.

    Raises:
        TargetError: Git will not read the repository, or is not installed.
    """
    listed = _git(toplevel, "diff", "--name-only", "--no-renames", "-z", "HEAD")
    if listed is None:
        raise TargetError(
            Problem(
                message="git cannot say what was changed",
                where=str(toplevel),
                hint=f"try it: git -C {shlex.quote(str(toplevel))} diff HEAD",
            )
        )
    return tuple(os.fsdecode(name) for name in listed.split(b"\0") if name)


def _git(toplevel: Path, *arguments: str) -> bytes | None:
    """What git prints; None if it fails or is not installed. It writes nothing, runs no hook."""
    import subprocess

    # GIT_DIR and its like would name another repository; GIT_CONFIG_* may hold safe.directory.
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name.startswith("GIT_CONFIG_")
    }
    environment |= {
        "GIT_OPTIONAL_LOCKS": "0",  # never refresh the index
        "GIT_NO_LAZY_FETCH": "1",  # a partial clone would go to the network
        "GIT_LITERAL_PATHSPECS": "1",
        "LC_ALL": "C",
    }
    try:
        done = subprocess.run(
            ["git", "-C", toplevel, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=environment,
            timeout=60,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    if b"dubious ownership" in done.stderr:
        raise TargetError(
            Problem(
                message="git will not read a repository that belongs to another user, so nothing "
                "vouches for its files",
                where=str(toplevel),
                hint="if you trust it: git config --global --add safe.directory "
                + shlex.quote(str(toplevel)),
            )
        )
    return done.stdout if done.returncode == 0 else None
