"""Installed distributions, found without importing them."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from gatepatch.editable import Location, editable_location
from gatepatch.environment import Environment
from gatepatch.errors import Problem, TargetError
from gatepatch.witness import Witness, git_folder, git_witness, record_witness


@dataclass(frozen=True, slots=True, kw_only=True)
class Root:
    """The folder that a target's files live under.

    Args:
        path: What paths in state are relative to: site-packages, or the checkout.
        state_dir: Where state stands: ``.gatepatch`` in it; for a checkout, in its git folder.
        kind: ``site`` or ``checkout``.
        repository: Whether git can vouch for its files.
    """

    path: Path
    state_dir: Path
    kind: Literal["site", "checkout"]
    repository: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """An installed distribution.

    Args:
        distribution: Canonical name.
        version: As its metadata has it.
        root: The folder its files live under.
        metadata: Its ``.dist-info`` or ``.egg-info``.
        location: Where its packages are imported from.
        editable: Whether it is an editable install.
        python: The interpreter of its environment, for commands to be printed.
        warnings: What a person should know, such as a second copy.
    """

    distribution: str
    version: Version
    root: Root
    metadata: Path
    location: Location
    editable: bool
    python: Path | None
    warnings: tuple[str, ...] = ()

    def locate(self, path: str) -> Path:
        """The absolute path of a file, such as ``flashinfer/jit/comm.py``.

        The last component is not resolved: it may be a link into an installer's cache.

        Raises:
            TargetError: It leaves the root, in itself or through a symlink.
        """
        parts = path.split("/")
        if path.startswith("/") or "\\" in path or any(p in ("", ".", "..") for p in parts):
            raise TargetError(Problem(message="is no path inside a distribution", where=path))
        top = self.location.packages.get(parts[0], self.location.base / parts[0])
        lexical = top.joinpath(*parts[1:])
        folder = Path(os.path.realpath(lexical.parent))
        if not folder.is_relative_to(self.root.path):
            raise TargetError(
                Problem(
                    message=f"leads out of {self.root.path}, to {folder}",
                    where=f"{self.distribution}: {path}",
                    hint="a symlinked folder is followed only inside its own root",
                )
            )
        return folder / lexical.name

    def relative(self, path: str) -> str:
        """The same file, relative to the root, with ``/``."""
        return self.locate(path).relative_to(self.root.path).as_posix()

    def witness(self, path: str) -> Witness | None:
        """What vouches for a file's pristine bytes: RECORD or git; None if nothing does."""
        relative = self.relative(path)
        if self.root.kind == "site":
            return record_witness(self.metadata, relative, self.locate(path))
        return git_witness(self.root.path, relative) if self.root.repository else None

    def reinstall_command(self, path: str | None = None) -> str:
        """The command that puts the original files back, to be printed."""
        if self.root.repository:
            what = shlex.quote(self.relative(path)) if path else "."
            return f"git -C {shlex.quote(str(self.root.path))} checkout -- {what}"
        what = f"{self.distribution}=={self.version}"
        python = shlex.quote(str(self.python or "python"))
        installer = self.metadata / "INSTALLER"
        if installer.is_file() and installer.read_text().strip() == "uv":
            return f"uv pip install --python {python} --no-deps --reinstall-package {self.distribution} {what}"
        return f"{python} -m pip install --no-deps --force-reinstall {what}"


def find_target(environment: Environment, distribution: str) -> Target | None:
    """Find a distribution in an environment; None if it is not installed.

    Of two copies, the one that the interpreter would import, with a warning.

    Raises:
        TargetError: Its metadata is damaged, or an editable install cannot be followed.
    """
    name = canonicalize_name(distribution)
    copies = [entry for folder in environment.paths for entry in _metadata(folder, name)]
    if not copies:
        return None
    chosen, *others = copies
    version = _version(chosen, name)
    location = editable_location(chosen)
    root = _root(chosen, location)
    warnings = tuple(
        f"a second copy of {name} lies in {other.parent}; {chosen.parent} is the one imported"
        for other in others
        if os.path.realpath(other) != os.path.realpath(chosen)
    )
    return Target(
        distribution=name,
        version=version,
        root=root,
        metadata=chosen,
        location=location or Location(base=root.path),
        editable=location is not None,
        python=environment.python,
        warnings=warnings,
    )


def roots(environment: Environment) -> tuple[Root, ...]:
    """Every root of an environment: its site folders, and its editable installs' checkouts."""
    found: dict[Path, Root] = {}
    for folder in environment.paths:
        if (folder / ".gatepatch").is_dir():
            root = _site_root(folder)
            found.setdefault(root.path, root)
        for entry in _metadata(folder, None):
            try:
                location = editable_location(entry)
            except TargetError:
                continue  # what cannot be followed was never patched
            if location is not None:
                root = _root(entry, location)
                found.setdefault(root.path, root)
    return tuple(found.values())


def _metadata(folder: Path, name: str | None) -> Iterator[Path]:
    """The metadata of one distribution in a folder, or of all for None."""
    with os.scandir(folder) as entries:
        names = sorted(entry.name for entry in entries)
    for entry in names:
        stem, _, kind = entry.rpartition(".")
        if kind not in ("dist-info", "egg-info", "egg-link"):
            continue
        # A name may itself hold hyphens in an egg-link or an old egg-info.
        own = stem if kind == "egg-link" else stem.split("-")[0]
        if name is None or canonicalize_name(own) == name:
            yield folder / entry


def _version(metadata: Path, name: str) -> Version:
    if metadata.suffix == ".egg-link":
        metadata = _egg_info_of(metadata, name)
    for file in (metadata / "METADATA", metadata / "PKG-INFO", metadata):
        if file.is_file():
            for line in file.read_text("utf-8", "replace").splitlines():
                if line.lower().startswith("version:"):
                    try:
                        return Version(line.partition(":")[2].strip())
                    except InvalidVersion as error:
                        raise TargetError(Problem(message=str(error), where=str(file))) from None
                if not line:
                    break
    raise TargetError(
        Problem(
            message="no version is to be found",
            where=str(metadata),
            hint=f"the installation is damaged: reinstall {name}",
        )
    )


def _egg_info_of(link: Path, name: str) -> Path:
    base = Path(link.read_text().splitlines()[0].strip())
    found = [p for p in base.glob("*.egg-info") if canonicalize_name(p.stem) == name]
    return found[0] if found else link


def _root(metadata: Path, location: Location | None) -> Root:
    if location is None:
        return _site_root(metadata.parent)
    base = Path(os.path.realpath(location.base))
    git = git_folder(base)
    if git is None:
        return Root(path=base, state_dir=base / ".gatepatch", kind="checkout", repository=False)
    toplevel, git_dir = git
    return Root(path=toplevel, state_dir=git_dir / ".gatepatch", kind="checkout", repository=True)


def _site_root(folder: Path) -> Root:
    path = Path(os.path.realpath(folder))
    return Root(path=path, state_dir=path / ".gatepatch", kind="site", repository=False)
