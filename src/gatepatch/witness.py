"""Witnesses: what is known of a file's pristine bytes without gatepatch's own state."""

from __future__ import annotations

import base64
import csv
import hashlib
import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from gatepatch.edits import sha256
from gatepatch.errors import Problem, TargetError


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """What vouches for a file's pristine bytes.

    Args:
        kind: ``record`` for the hash in RECORD, ``git`` for the blob in HEAD.
        sha256: Of the pristine bytes.
        read: Returns them; None where only the hash is known.
    """

    kind: Literal["record", "git"]
    sha256: str
    read: Callable[[], bytes] | None = None


def record_witness(metadata: Path, relative: str, path: Path) -> Witness | None:
    """The hash that RECORD has of a file.

    Args:
        metadata: The distribution's ``.dist-info``.
        relative: The file's path relative to the folder that the metadata lies in.
        path: The file.
    """
    try:
        data = (metadata / "RECORD").read_bytes()
    except OSError:
        return None
    entry = _record_entry(data, relative)
    algorithm, _, digest = entry.partition("=")
    if not digest:
        return None
    try:
        wanted = base64.urlsafe_b64decode(digest + "=" * (-len(digest) % 4))
        if algorithm == "sha256":
            return Witness(kind="record", sha256=wanted.hex())
        # Another algorithm says whether the bytes are pristine, not what their SHA-256 is.
        current = path.read_bytes()
        same = hashlib.new(algorithm, current).digest() == wanted
    except (ValueError, OSError):
        return None
    return Witness(kind="record", sha256=sha256(current)) if same else None


def _record_entry(data: bytes, relative: str) -> str:
    """The hash field of one file; a search, since some RECORDs have tens of thousands of lines."""
    name = relative.encode()
    start = data.find(b"\n" + name + b",")
    start = 0 if start < 0 and data.startswith(name + b",") else start + 1
    if start or data.startswith(name + b","):
        line = data[start : data.find(b"\n", start)] if b"\n" in data[start:] else data[start:]
        return line.decode("utf-8", "replace").split(",")[1]
    if b'"' in data:  # quoted: the name has a comma or a quote in it
        for row in csv.reader(data.decode("utf-8", "replace").splitlines()):
            if len(row) >= 2 and row[0] == relative:
                return row[1]
    return ""


def git_folder(folder: Path) -> tuple[Path, Path] | None:
    """The top of the work tree that a folder lies in, and its git folder; None outside any."""
    for top in (folder, *folder.parents):
        entry = top / ".git"
        if entry.is_dir():
            return top, entry
        if entry.is_file():  # a worktree, or a submodule
            text = entry.read_text("utf-8", "replace")
            if text.startswith("gitdir:"):
                return top, Path(os.path.normpath(top / text.partition(":")[2].strip()))
    return None


def git_witness(toplevel: Path, relative: str) -> Witness | None:
    """The blob of a file in HEAD, as git would check it out; None if git does not track it.

    Raises:
        TargetError: Git will not read the repository, as where another user owns it.
    """
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    environment["GIT_OPTIONAL_LOCKS"] = "0"  # never refresh the index: nothing is written
    environment["LC_ALL"] = "C"
    try:
        done = subprocess.run(
            ["git", "-C", toplevel, "cat-file", "--filters", f"HEAD:{relative}"],
            capture_output=True,
            env=environment,
            timeout=60,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    if b"dubious ownership" in done.stderr:
        raise TargetError(
            Problem(
                message="git will not read a repository that belongs to another user",
                where=str(toplevel),
                hint=f"git config --global --add safe.directory {toplevel}",
            )
        )
    if done.returncode != 0:
        return None
    blob = done.stdout
    return Witness(kind="git", sha256=sha256(blob), read=lambda: blob)
