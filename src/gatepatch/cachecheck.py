"""Find JIT binaries that do not derive from the sources on disk.

ninja goes by mtimes, and by the headers that the compiler has reported. Both can miss a change:
up to ninja 1.11 one that is made while the source is being compiled, and in ``.cpp`` units one of
a header that is found by ``-isystem``. And FlashInfer 0.4.0 to 0.6.11 writes a ``build.ninja``
only where there is none, so that a second environment of the same version builds the first one's
sources. Content that has changed under an old mtime cannot be seen here either.
"""

from __future__ import annotations

import itertools
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from gatepatch import ninja
from gatepatch.files import MTIME_STEP
from gatepatch.jitcache import Module, list_modules

if TYPE_CHECKING:
    from gatepatch.workspace import Workspace

Reason = Literal[
    "outdated",
    "changed-while-built",
    "unseen-header",
    "missing-source",
    "other-environment",
    "moved",
    "unreadable",
]

_Record = TypeVar("_Record", ninja.LogEntry, ninja.Deps)

_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*[<"]([^">\n]+)[">]', re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something that is wrong with a module in a JIT cache.

    Args:
        module: Its name.
        folder: The folder that its binaries lie in.
        reason: What is wrong.
        path: The source, header, output or record that it is about.
    """

    module: str
    folder: Path
    reason: Reason
    path: Path

    @property
    def message(self) -> str:
        """What was found, in one line."""
        match self.reason:
            case "outdated":
                return f"{self.path} is newer than the binary; the next load builds it again"
            case "changed-while-built":
                return f"{self.path} changed while it was compiled, and ninja does not see it"
            case "unseen-header":
                return f"{self.path} is newer than the binary, and no depfile lists it"
            case "missing-source":
                return f"it is built from {self.path}, which is not there"
            case "other-environment":
                return f"it is built from {self.path}, which is not this environment's"
            case "moved":
                return f"its build.ninja builds {self.path}, and another file is loaded"
            case "unreadable":
                return f"{self.path} cannot be read, so it is not known what it is built from"

    @property
    def command(self) -> str | None:
        """What to do once no server uses the module; None if nothing needs to be done."""
        return None if self.reason == "outdated" else f"rm -r {shlex.quote(str(self.folder))}"


def packages_of(workspace: Workspace) -> tuple[Path, ...]:
    """The folders of the packages whose sources an environment's JIT caches are built from."""
    target = workspace.target("flashinfer-python")
    return () if target is None else (target.locate("flashinfer/__init__.py").parent,)


def check(roots: Sequence[Path], packages: Sequence[Path]) -> tuple[Finding, ...]:
    """Check every module in some caches.

    Args:
        roots: As ``jitcache.cache_roots`` gives them.
        packages: As ``packages_of`` gives them. Without any, environments are not told apart.
    """
    data = [child for package in packages for child in (package / "data").glob("*")]
    disk = _Disk(
        # A checkout's package has links in its data folder, and FlashInfer resolves them.
        own=tuple(os.path.realpath(folder) for folder in (*packages, *data)),
        names=frozenset(package.name for package in packages),
    )
    modules = (m for m in list_modules(roots) if (m.folder / "build.ninja").is_file())
    return tuple(dict.fromkeys(finding for m in modules for finding in _module(m, disk)))


@dataclass(slots=True, kw_only=True)
class _Disk:
    """What files there are, each looked at once.

    Args:
        own: The environment's packages, resolved.
        names: The names of the packages.
    """

    own: tuple[str, ...]
    names: frozenset[str]
    _mtimes: dict[str, int | None] = field(default_factory=dict)
    _included: dict[tuple[str, tuple[str, ...]], list[str]] = field(default_factory=dict)

    def mtime(self, path: str) -> int | None:
        """In nanoseconds; None if there is no such file."""
        if path not in self._mtimes:
            try:
                self._mtimes[path] = Path(path).stat().st_mtime_ns
            except OSError:
                self._mtimes[path] = None
        return self._mtimes[path]

    def is_own(self, path: str) -> bool:
        """Whether a resolved path lies in the environment's packages."""
        return _within(path, self.own)

    def names_another(self, path: str) -> bool:
        """Whether a path looks like one in another copy of the packages."""
        if not self.own or self.is_own(os.path.realpath(path)):
            return False
        whole = f"{path}/"
        return any(f"/{n}/data/" in whole or f"/include/{n}/" in whole for n in self.names)

    def reached(self, sources: Iterable[str], folders: tuple[str, ...]) -> set[str]:
        """The environment's own headers that sources may include, whatever the conditions."""
        found: set[str] = set()
        todo = list(sources)
        while todo:
            new = {path for path in self._includes(todo.pop(), folders) if self.is_own(path)}
            todo += new - found
            found |= new
        return found

    def _includes(self, path: str, folders: tuple[str, ...]) -> list[str]:
        if (path, folders) not in self._included:
            try:
                names = _INCLUDE.findall(Path(path).read_bytes())
            except OSError:
                names = []
            beside = (str(Path(path).parent), *folders)
            candidates = ([_at(f, os.fsdecode(name)) for f in beside] for name in names)
            first = (
                next((c for c in row if self.mtime(c) is not None), None) for row in candidates
            )
            self._included[path, folders] = [found for found in first if found is not None]
        return self._included[path, folders]


@dataclass(slots=True, kw_only=True)
class _Records:
    """What ninja remembers of a module's outputs, by their absolute paths."""

    log: dict[str, ninja.LogEntry] = field(default_factory=dict)
    deps: dict[str, ninja.Deps] = field(default_factory=dict)

    def began(self, output: str, built: int) -> int:
        """When the command that made an output began; as good as never without a record."""
        entry = self.log.get(output)
        return built if entry is None else min(entry.mtime, built - entry.took)

    def logged(self, output: str, built: int) -> int:
        """What ninja compares with the mtimes of the inputs."""
        entry = self.log.get(output)
        return built if entry is None else min(entry.mtime, built)


def _module(module: Module, disk: _Disk) -> Iterator[Finding]:
    def finding(reason: Reason, path: str) -> Finding:
        return Finding(module=module.name, folder=module.folder, reason=reason, path=Path(path))

    records = _Records()
    # In cached_ops until FlashInfer 0.6.0, and for a batch; else in the module's folder.
    for folder in (module.folder.parent, module.folder):
        for path in _read(folder, records):
            yield finding("unreadable", path)
    manifest = module.folder / "build.ninja"
    try:
        edges = ninja.read_manifest(manifest.read_text(errors="surrogateescape"))
    except (OSError, ValueError):
        yield finding("unreadable", str(manifest))
        return
    for edge in edges:
        for reason, path in _edge(edge, module, records, disk):
            yield finding(reason, path)


def _read(folder: Path, records: _Records) -> Iterator[str]:
    """Read ninja's records in a folder; give those that cannot be read."""
    log, deps = folder / ".ninja_log", folder / ".ninja_deps"
    try:
        if log.is_file():
            for output, entry in ninja.read_log(log.read_text(errors="surrogateescape")).items():
                _keep_newer(records.log, _at(folder, output), entry)
    except (OSError, ValueError):
        yield str(log)
    try:
        if deps.is_file():
            for output, seen in ninja.read_deps(deps.read_bytes()).items():
                inputs = tuple(_at(folder, path) for path in seen.inputs)
                _keep_newer(records.deps, _at(folder, output), replace(seen, inputs=inputs))
    except (OSError, ValueError):
        yield str(deps)


def _edge(
    edge: ninja.Edge, module: Module, records: _Records, disk: _Disk
) -> Iterator[tuple[Reason, str]]:
    ops = module.folder.parent  # what relative names start from until FlashInfer 0.6.0
    sources = [_at(ops, path) for path in edge.inputs]
    folders = _header_folders(edge)
    for output in (_at(ops, path) for path in edge.outputs):
        if not _within(output, [str(module.folder)]):
            yield "moved", output
            continue
        seen = records.deps.get(output)
        inputs = tuple(dict.fromkeys((*sources, *(seen.inputs if seen else ()))))
        strange = [path for path in sources if _is_strange(path, ops.parent, disk)]
        strange += [path for path in (*inputs, *folders) if disk.names_another(path)]
        if strange:
            yield "other-environment", strange[0]
            continue
        for path in inputs:
            if disk.mtime(path) is None and not _within(path, [str(module.folder)]):
                yield "missing-source", path
        built = disk.mtime(output)
        if built is not None:
            yield from _output(output, built, edge, inputs, records, disk)
            if " -MMD " in edge.command:
                hidden = disk.reached(inputs, folders) - set(inputs)
                since = records.began(output, built) + MTIME_STEP
                for path in sorted(hidden):
                    if (disk.mtime(path) or 0) > since:
                        yield "unseen-header", path


def _output(
    output: str,
    built: int,
    edge: ninja.Edge,
    inputs: Iterable[str],
    records: _Records,
    disk: _Disk,
) -> Iterator[tuple[Reason, str]]:
    # One step is allowed for: what gatepatch writes is dated that far ahead, and FlashInfer
    # writes generated sources right before it builds them.
    since = records.began(output, built) + MTIME_STEP
    for path in inputs:
        changed = disk.mtime(path) or 0
        if changed > records.logged(output, built):
            yield "outdated", path
        elif edge.depfile and changed > since:
            yield "changed-while-built", path


def _is_strange(source: str, workspace: Path, disk: _Disk) -> bool:
    """Whether a source is neither the environment's nor generated beside the cache."""
    real = os.path.realpath(source)
    return bool(disk.own) and not disk.is_own(real) and not _within(real, [str(workspace)])


def _keep_newer(records: dict[str, _Record], key: str, value: _Record) -> None:
    if key not in records or records[key].mtime < value.mtime:
        records[key] = value


def _header_folders(edge: ninja.Edge) -> tuple[str, ...]:
    """The folders that a command looks for headers in."""
    words = edge.command.split()
    separate = [b for a, b in itertools.pairwise(words) if a in ("-isystem", "-I")]
    joined = [word[2:] for word in words if word.startswith("-I") and word != "-I"]
    return (*joined, *separate)


def _within(path: str, folders: Iterable[str]) -> bool:
    return any(path == folder or path.startswith(f"{folder}/") for folder in folders)


def _at(folder: str | Path, path: str) -> str:
    return os.path.normpath(f"{folder}/{path}" if not path.startswith("/") else path)
