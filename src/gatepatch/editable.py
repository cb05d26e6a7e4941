"""Editable installs: where their packages are imported from, read and never run.

Sources: PEP 660; setuptools' ``editable_wheel``; the ``editables`` package; ``.egg-link`` of
``setup.py develop``; flit's symlinks.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gatepatch.environment import pth_lines
from gatepatch.errors import Problem, TargetError
from gatepatch.metadata import direct_url, egg_link_folder, record_names
from gatepatch.records import dataclass, field

if TYPE_CHECKING:
    import ast

_BUILDING_HOOKS = {  # a name in the hook's code to the build backend that wrote it
    "MesonpyMetaFinder": "meson-python",
    "ScikitBuildRedirectingFinder": "scikit-build-core",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """Where a distribution's packages are imported from.

    Args:
        folders: The folders on the import path, in order.
        packages: Dotted name to its folder or ``.py`` file, where an import hook maps it.
    """

    folders: tuple[Path, ...] = ()
    packages: Mapping[str, Path] = field(default_factory=dict)

    @property
    def base(self) -> Path:
        """The folder that stands for the whole: on the import path, or where it would be."""
        if self.folders:
            return self.folders[0]
        parents = [path.parents[name.count(".")] for name, path in self.packages.items()]
        return Path(os.path.commonpath(parents))

    def find(self, parts: Sequence[str]) -> Path | None:
        """Where a path such as ``("flashinfer", "jit", "comm.py")`` lies; None if nowhere."""
        for count in range(len(parts), 0, -1):
            if (package := self.packages.get(".".join(parts[:count]))) is not None:
                return package.joinpath(*parts[count:])
        module = ".".join(parts).removesuffix(".py")
        if parts[-1].endswith(".py") and (found := self.packages.get(module)) is not None:
            return found if found.suffix == ".py" else found.with_name(found.name + ".py")
        tops = [folder / parts[0] for folder in self.folders]
        top = next((top for top in tops if top.exists()), tops[0] if tops else None)
        return top.joinpath(*parts[1:]) if top else None


def editable_location(metadata: Path) -> Location | None:
    """Where an editable install is imported from; None for an ordinary install.

    Raises:
        TargetError: It is editable, by a mechanism that cannot be followed.
    """
    site = metadata.parent
    if metadata.suffix == ".egg-link":
        return Location(folders=(egg_link_folder(metadata),))
    if metadata.suffix == ".egg-info":
        # setuptools leaves one in a source folder, which PYTHONPATH or a path file may name.
        installed = site.name in ("site-packages", "dist-packages")
        return None if installed else Location(folders=(site,))
    source = _source(metadata)
    if source is None:
        return None
    names = record_names(metadata)
    folders: list[Path] = []
    packages: dict[str, Path] = {}
    for name in names:
        if name.endswith(".pth"):
            folders += (Path(os.path.normpath(site / line)) for line in pth_lines(site / name))
    for top in dict.fromkeys(name.partition("/")[0] for name in names):
        if top.endswith(".py") and (site / top).is_file() and not (site / top).is_symlink():
            code = (site / top).read_text("utf-8", "replace")
            packages.update(_mapping(code))
        elif (site / top).is_symlink():
            packages[top.removesuffix(".py")] = Path(os.path.realpath(site / top))
    if folders or packages:
        there = [folder for folder in folders if folder.is_dir()]
        return Location(folders=tuple(there or folders), packages=packages)
    raise TargetError(_unreadable(metadata, source, names))


def _unreadable(metadata: Path, source: Path, names: Sequence[str]) -> Problem:
    """Why an editable install cannot be followed, and what to do."""
    where, folder = str(metadata), shlex.quote(str(source))
    if not names:
        return Problem(
            message=f"is an editable install of {source}, and has no RECORD to follow",
            where=where,
            hint=f"install it again: pip install -e {folder}",
        )
    for name in names:
        path = metadata.parent / name
        if name.endswith(".py") and "/" not in name and path.is_file():
            code = path.read_text("utf-8", "replace")
            for mark, backend in _BUILDING_HOOKS.items():
                if mark in code:
                    return Problem(
                        message=f"is an editable install of {source} by {backend}, whose import "
                        "hook builds and maps files as they are imported: it cannot be read",
                        where=where,
                        hint=f"install it without -e: pip install {folder}",
                    )
    return Problem(
        message=f"is an editable install of {source} by a mechanism that gatepatch cannot read",
        where=where,
        hint="install it with a path file: pip install --config-settings editable_mode=compat "
        f"-e {folder} (setuptools), or without -e",
    )


def _source(metadata: Path) -> Path | None:
    """The source folder of an editable install, by its own note."""
    document = direct_url(metadata)
    info, url = document.get("dir_info"), document.get("url")
    if not isinstance(info, dict) or info.get("editable") is not True or not isinstance(url, str):
        return None
    from urllib.parse import unquote, urlparse

    return Path(unquote(urlparse(url).path))


def _mapping(code: str) -> dict[str, Path]:
    """The mapping of names to folders that an import hook was written with."""
    import ast

    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError):
        return {}
    found: dict[str, Path] = {}
    for node in ast.walk(tree):
        match node:
            # setuptools: MAPPING: dict[str, str] = {'package': '/folder/package'}
            case (
                ast.AnnAssign(target=ast.Name(id="MAPPING"), value=ast.Dict() as value)
                | ast.Assign(targets=[ast.Name(id="MAPPING")], value=ast.Dict() as value)
            ):
                found.update(_pairs(zip(value.keys, value.values, strict=True)))
            # editables: F.map_module('package', '/folder/package/__init__.py')
            case ast.Call(func=ast.Attribute(attr="map_module"), args=[name, path]):
                found.update(_pairs([(name, path)]))
    return found


def _pairs(pairs: Iterable[tuple[ast.expr | None, ast.expr]]) -> dict[str, Path]:
    import ast

    found = {}
    for key, value in pairs:
        match key, value:
            case ast.Constant(value=str(name)), ast.Constant(value=str(path)):
                folder = Path(path)
                found[name] = folder.parent if folder.name == "__init__.py" else folder
    return found
