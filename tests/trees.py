"""Builders of small environments, distributions and repositories, for every test."""

from __future__ import annotations

import base64
import hashlib
import os
import subprocess
import sys
import venv
from collections.abc import Iterable, Mapping
from pathlib import Path


def make_environment(tmp_path: Path, name: str = "env") -> Path:
    """Make a virtual environment that can run, without pip; return its prefix."""
    prefix = tmp_path / name
    venv.EnvBuilder(symlinks=True, with_pip=False).create(prefix)
    return prefix


def python_of(prefix: Path) -> Path:
    """The interpreter of an environment."""
    return prefix / "bin" / "python"


def site_of(prefix: Path) -> Path:
    """The site-packages of an environment."""
    major, minor = sys.version_info[:2]
    return prefix / "lib" / f"python{major}.{minor}" / "site-packages"


def make_distribution(
    site: Path,
    name: str,
    version: str,
    files: Mapping[str, bytes | str],
    *,
    record: bool = True,
    installer: str = "pip",
) -> Path:
    """Install a distribution by hand; return its ``.dist-info``.

    Args:
        site: The folder to install it in.
        name: As the metadata has it; hyphens and dots become underscores in the folder's name.
        version: As the metadata has it.
        files: Path to content; text is written as UTF-8.
        record: Whether it has a RECORD, with right hashes.
        installer: The content of INSTALLER.
    """
    stem = name.replace("-", "_").replace(".", "_")
    info = f"{stem}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n\nA test.\n"
    whole = {
        **files,
        f"{info}/METADATA": metadata,
        f"{info}/INSTALLER": installer + "\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nTag: py3-none-any\n",
    }
    write_files(site, whole)
    if record:
        (site / info / "RECORD").write_text(record_of(site, whole, info))
    return site / info


def write_files(folder: Path, files: Mapping[str, bytes | str]) -> None:
    """Write files and the folders that they lie in."""
    for path, content in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)


def record_of(site: Path, paths: Iterable[str], info: str) -> str:
    """The RECORD of files as they stand."""
    lines = [f"{path},{record_hash((site / path).read_bytes())}" for path in paths]
    return "\n".join([*lines, f"{info}/RECORD,,"]) + "\n"


def record_hash(data: bytes, algorithm: str = "sha256") -> str:
    """The hash and size fields of a RECORD line."""
    digest = base64.urlsafe_b64encode(hashlib.new(algorithm, data).digest()).rstrip(b"=").decode()
    return f"{algorithm}={digest},{len(data)}"


def git(folder: Path, *arguments: str) -> str:
    """Run git in a folder, away from the settings of the person who runs the tests."""
    names = ("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL")
    who = dict.fromkeys(names, "tester@example.org")
    return subprocess.run(
        ["git", "-C", folder, *arguments],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, **who},
    ).stdout.strip()


def make_repository(folder: Path, files: Mapping[str, bytes | str]) -> Path:
    """Make a git repository with one commit of these files; return its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q", "-b", "main")
    write_files(folder, files)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "first")
    return folder
