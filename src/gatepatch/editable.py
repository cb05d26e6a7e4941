"""Editable installs: where their packages are imported from, read and never run.

Sources: PEP 660; setuptools' ``editable_wheel``; the ``editables`` package; ``.egg-link`` of
``setup.py develop``.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlparse

from gatepatch.errors import Problem, TargetError


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """Where a distribution's packages are imported from.

    Args:
        base: The folder on the import path.
        packages: Top-level name to its folder, where an import hook maps it.
    """

    base: Path
    packages: Mapping[str, Path] = field(default_factory=dict)


def editable_location(metadata: Path) -> Location | None:
    """Where an editable install is imported from; None for an ordinary install.

    Raises:
        TargetError: It is editable, by a mechanism that cannot be followed.
    """
    if metadata.suffix == ".egg-link":
        return Location(base=Path(metadata.read_text().splitlines()[0].strip()))
    source = _direct_url(metadata)
    if source is None:
        return None
    site = metadata.parent
    installed = _record_names(metadata)
    for name in installed:
        if name.endswith(".pth") and (site / name).is_file():
            for line in (site / name).read_text("utf-8", "replace").splitlines():
                if line.strip() and not line.startswith(("#", "import ", "import\t")):
                    return Location(base=site / line.strip())
    packages: dict[str, Path] = {}
    for name in installed:
        if name.endswith(".py") and "/" not in name and (site / name).is_file():
            packages.update(_mapping((site / name).read_text("utf-8", "replace")))
    if packages:
        first = next(iter(packages.values()))
        return Location(base=first.parent, packages=packages)
    raise TargetError(
        Problem(
            message=f"is an editable install of {source} by a mechanism that gatepatch cannot read",
            where=str(metadata),
            hint=f"install it again with a path file: pip install --config-settings editable_mode=compat -e {source}",
        )
    )


def _direct_url(metadata: Path) -> Path | None:
    try:
        document = json.loads((metadata / "direct_url.json").read_text())
        if document["dir_info"].get("editable") is not True:
            return None
        return Path(unquote(urlparse(document["url"]).path))
    except (OSError, ValueError, KeyError, AttributeError):
        return None


def _record_names(metadata: Path) -> list[str]:
    try:
        lines = (metadata / "RECORD").read_text("utf-8", "replace").splitlines()
    except OSError:
        return []
    return [line.partition(",")[0].strip('"') for line in lines]


def _mapping(code: str) -> dict[str, Path]:
    """The mapping of top-level names to folders that an import hook was written with."""
    try:
        tree = ast.parse(code)
    except SyntaxError:
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
    found = {}
    for key, value in pairs:
        match key, value:
            case ast.Constant(value=str(name)), ast.Constant(value=str(path)) if "." not in name:
                folder = Path(path)
                found[name] = folder.parent if folder.name == "__init__.py" else folder
    return found
