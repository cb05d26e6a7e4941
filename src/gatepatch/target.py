"""Installed distributions, found without importing them."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from gatepatch.editable import Location, editable_location
from gatepatch.environment import Environment
from gatepatch.errors import Problem, TargetError
from gatepatch.metadata import canonical_name, is_whole, metadata_in, requirement, version_of
from gatepatch.records import dataclass
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
        version: As its metadata has it, in canonical form.
        root: The folder its files live under.
        metadata: Its ``.dist-info`` or ``.egg-info``.
        location: Where its packages are imported from.
        editable: Whether it is an editable install.
        python: The interpreter of its environment, for commands to be printed.
        paths: The folders that its environment imports from, in order.
        warnings: What a person should know, such as a second copy.
    """

    distribution: str
    version: str
    root: Root
    metadata: Path
    location: Location
    editable: bool
    python: Path | None
    paths: tuple[Path, ...] = ()
    warnings: tuple[str, ...] = ()

    def locate(self, path: str) -> Path:
        """The absolute path of a file, such as ``flashinfer/jit/comm.py``.

        The last component is not resolved: it may be a link into an installer's cache.

        Raises:
            TargetError: It leaves the root, in itself or through a symlink.
        """
        parts = path.split("/")
        if "\\" in path or "\0" in path or any(part in ("", ".", "..") for part in parts):
            raise TargetError(Problem(message="is no path inside a distribution", where=path))
        lexical = self.location.find(parts)
        if lexical is None:
            raise TargetError(
                Problem(
                    message="lies in none of the packages that its editable install maps: "
                    + ", ".join(self.location.packages),
                    where=f"{self.distribution}: {path}",
                )
            )
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

    def shadow(self, path: str) -> Path | None:
        """What is imported in place of a file's package; None if that is the one imported.

        A folder on ``PYTHONPATH``, or what an older install left beside a path file, may come
        first, and then a change has no effect.
        """
        top = path.partition("/")[0]
        own = self.location.find([top])
        for folder in self.paths:
            first = folder / top
            if (first / "__init__.py").is_file() or (top.endswith(".py") and first.is_file()):
                same = own is not None and os.path.realpath(own) == os.path.realpath(first)
                return None if same else first
        return None

    def witness(self, path: str) -> Witness | None:
        """What vouches for a file's pristine bytes: RECORD or git; None if nothing does."""
        if self.root.kind == "site":
            return record_witness(self.metadata, path, self.locate(path))
        return git_witness(*self._in_git(path)) if self.root.repository else None

    def _in_git(self, path: str) -> tuple[Path, str]:
        """The top of the work tree that a file lies in, a submodule's own, and its path there."""
        file = self.locate(path)
        top, _ = git_folder(file.parent) or (self.root.path, None)
        return top, file.relative_to(top).as_posix()

    def reinstall_command(self, path: str | None = None) -> str:
        """What puts the original files back, to be printed: a command, if there is one.

        Args:
            path: The file; without it, a placeholder stands in a checkout's command.
        """
        if self.root.repository:
            top, what = self._in_git(path) if path else (self.root.path, "FILE")
            return f"git -C {shlex.quote(str(top))} checkout HEAD -- {shlex.quote(what)}"
        if self.editable:
            return f"copy it again from where {self.root.path} came from"
        python = shlex.quote(str(self.python or "python"))
        what = shlex.quote(requirement(self.metadata, self.distribution))
        installer = self.metadata / "INSTALLER"
        match installer.read_text("utf-8", "replace").strip() if installer.is_file() else "":
            case "uv":
                return (
                    f"uv pip install --python {python} --no-deps "
                    f"--reinstall-package {self.distribution} {what}"
                )
            case "conda":
                prefix = shlex.quote(str(self.python.parents[1])) if self.python else "PREFIX"
                return (
                    f"conda install -p {prefix} --force-reinstall "
                    f"{self.distribution}={self.version}"
                )
            case _:
                return f"{python} -m pip install --no-deps --force-reinstall {what}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Copy:
    """One place where a distribution is installed, by its metadata."""

    metadata: Path
    location: Location | None

    @property
    def place(self) -> str:
        """The folder that it is imported from."""
        return os.path.realpath(self.location.base if self.location else self.metadata.parent)


def find_target(environment: Environment, distribution: str) -> Target | None:
    """Find a distribution in an environment; None if it is not installed.

    Of two copies, the one that the interpreter would import, with a warning.

    Raises:
        TargetError: Its metadata is damaged or missing, or an editable install cannot be followed.
    """
    name = canonical_name(distribution)
    found = [entry for folder in environment.paths for entry in metadata_in(folder, name)]
    entries = [entry for entry in found if entry.suffix != ".egg"]
    if not entries:
        _refuse_egg(found, name)
        _refuse_bare_module(environment, name)
        return None
    whole = [entry for entry in entries if is_whole(entry)]
    first, *more = whole or entries[:1]
    chosen = _Copy(metadata=first, location=editable_location(first))
    version = version_of(chosen.metadata, name)
    root = _root(chosen, name)
    return Target(
        distribution=name,
        version=version,
        root=root,
        metadata=chosen.metadata,
        location=chosen.location or Location(folders=(root.path,)),
        editable=chosen.location is not None,
        python=environment.python,
        paths=environment.paths,
        warnings=(
            *_leftovers(name, [entry for entry in entries if entry not in (first, *more)]),
            *_second_copies(name, chosen, more),
            *_no_git(root),
        ),
    )


def _leftovers(name: str, entries: list[Path]) -> Iterator[str]:
    for entry in entries:
        yield f"{entry} is a leftover without metadata of {name}, and is not looked at"


def _second_copies(name: str, chosen: _Copy, others: list[Path]) -> Iterator[str]:
    """Warn of other copies.

    Raises:
        TargetError: Two versions claim one folder, so that neither can be believed.
    """
    for other in others:
        if other.parent == chosen.metadata.parent:
            if other.suffix == ".dist-info":
                raise TargetError(
                    Problem(
                        message=f"has two versions of {name}: {chosen.metadata.name} and "
                        f"{other.name}; only one of them describes the files",
                        where=str(other.parent),
                        hint=f"pip uninstall {name} until none is left, and install it again",
                    )
                )
            yield f"{other} is older metadata of {name}, and is not looked at"
        elif _place(other) != chosen.place:
            yield (
                f"a second copy of {name} is installed: {chosen.metadata} is the one that is "
                f"imported, {other} is left as it is"
            )  # the same place is what setuptools leaves in an editable install's source folder


def _place(metadata: Path) -> str | None:
    try:
        return _Copy(metadata=metadata, location=editable_location(metadata)).place
    except TargetError:
        return None


def _no_git(root: Root) -> Iterator[str]:
    if not root.repository:
        return
    import shutil

    if shutil.which("git") is None:
        yield f"git is not installed, so nothing vouches for the files of {root.path}"


def _refuse_bare_module(environment: Environment, name: str) -> None:
    """Refuse a package that is there without its metadata.

    Raises:
        TargetError: A module of the distribution's name is there.
    """
    module = name.replace("-", "_")
    for folder in environment.paths:
        for guess in (module, module.removesuffix("_python")):
            if (folder / guess / "__init__.py").is_file():
                raise TargetError(
                    Problem(
                        message=f"looks like {name}, but has no metadata (no .dist-info), so its "
                        "version and its files are not known",
                        where=str(folder / guess),
                        hint=f"install it with pip or uv: {name} (a checkout: pip install -e)",
                    )
                )


def roots(environment: Environment) -> Iterator[Root]:
    """Every root of an environment: its site folders, and its editable installs' checkouts.

    Of several with one path the first one counts, and a site folder's only if it has state.
    """
    for folder in environment.paths:
        yield _site_root(folder)
        for entry in metadata_in(folder):
            try:
                copy = _Copy(metadata=entry, location=editable_location(entry))
                if copy.location is not None:
                    yield _root(copy, entry.name)
            except (TargetError, OSError):
                continue  # what cannot be followed was never patched


def _refuse_egg(eggs: list[Path], name: str) -> None:
    """Refuse a distribution of which there is nothing but eggs."""
    if eggs:
        raise TargetError(
            Problem(
                message=f"{name} is installed as an egg, whose files cannot be patched safely",
                where=str(eggs[0]),
                hint=f"install it with pip or uv instead: pip install --force-reinstall {name}",
            )
        )


def _root(copy: _Copy, name: str) -> Root:
    """The root that a copy's files live under.

    Raises:
        TargetError: It is an editable install of a folder that is gone.
    """
    if copy.location is None:
        return _site_root(copy.metadata.parent)
    base = Path(copy.place)
    if not base.is_dir():
        raise TargetError(
            Problem(
                message=f"is an editable install of {base}, which is not there",
                where=str(copy.metadata),
                hint=f"install {name} again",
            )
        )
    git = git_folder(base)
    if git is None:
        return Root(path=base, state_dir=base / ".gatepatch", kind="checkout", repository=False)
    toplevel, git_dir = git
    return Root(path=toplevel, state_dir=git_dir / ".gatepatch", kind="checkout", repository=True)


def _site_root(folder: Path) -> Root:
    path = Path(os.path.realpath(folder))
    return Root(path=path, state_dir=path / ".gatepatch", kind="site", repository=False)
