"""What macros mean that a file does not define itself: those of the headers that it includes.

Only headers of the same distribution are looked into, and only for macros whose name speaks of an
architecture. One that two of them define is not told: which is read last is not worked out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from os.path import isfile
from pathlib import Path
from posixpath import dirname, join, normpath

from gatepatch.arch import CudaPass
from gatepatch.gates.cuda_macros import read_macros, speaks_of_architecture
from gatepatch.gates.cuda_settled import Outside, Settling
from gatepatch.gates.directives import scan
from gatepatch.gates.preprocessor_eval import Macro

_LINE = re.compile(
    rb'^[ \t]*#[ \t]*(?:include[ \t]*(?:"([^"\n]+)"|<([^>/\n]+/[^>\n]+)>)|define[ \t]+(\w+))',
    re.MULTILINE,
)
"""What a file includes, the C++ library's own headers left out, and what it defines."""
_MOST = 1000
"""How many headers are looked into for one file."""


@dataclass(frozen=True, slots=True)
class _Header:
    """What a file includes, and the macros that it defines whose names speak of an architecture."""

    includes: tuple[str, ...]
    defines: frozenset[str]


@dataclass(slots=True)
class Headers:
    """The headers of one distribution, each looked into once.

    Args:
        base: Where it is imported from.
    """

    base: Path
    _headers: dict[str, _Header] = field(default_factory=dict)
    _places: dict[tuple[str, str], str | None] = field(default_factory=dict)
    _roots: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _settled: dict[str, Settling | None] = field(default_factory=dict)
    _read: dict[str, set[str]] = field(default_factory=dict)
    _within: dict[str, dict[str, list[str]]] = field(default_factory=dict)

    def of(self, path: str, read: set[str]) -> Included:
        """What macros mean that a file does not define.

        Args:
            path: The file, relative to where the distribution is imported from.
            read: Is added the headers that tell.
        """
        return Included(self, path, read)

    def defining(self, path: str, name: str) -> tuple[Settling | None, set[str]]:
        """The one header among those that a file includes that defines a macro, and all that tell
        what it means there: no header, and none."""
        if path not in self._within:
            self._within[path] = self._defined_within(path)
        found = self._within[path].get(name, [])
        if len(found) != 1:
            return None, set()
        (header,) = found
        if header not in self._settled:
            self._settled[header] = None  # a header that hangs on itself tells nothing
            self._read[header] = {header}
            self._settled[header] = self._settle(header)
        return self._settled[header], self._read[header]

    def _settle(self, header: str) -> Settling:
        found = scan((self.base / header).read_bytes())
        settling = Settling(found, read_macros(found), self.of(header, self._read[header]))
        settling.run()
        return settling

    def _defined_within(self, path: str) -> dict[str, list[str]]:
        """The headers that a file includes, by the macros that they define."""
        found: dict[str, list[str]] = {}
        todo, seen = [path], {path}
        while todo and len(seen) < _MOST:
            here = todo.pop()
            header = self._header(here)
            if here != path:
                for name in header.defines:
                    found.setdefault(name, []).append(here)
            fresh = [place for place in header.includes if place not in seen]
            seen.update(fresh)
            todo += fresh
        return found

    def _header(self, path: str) -> _Header:
        if path not in self._headers:
            includes: dict[str, None] = {}
            defines: set[str] = set()
            try:
                source = (self.base / path).read_bytes()
            except OSError:
                source = b""
            for match in _LINE.finditer(source):
                if match[3]:
                    name = match[3].decode("latin-1")
                    if speaks_of_architecture(name):
                        defines.add(name)
                elif place := self._find(dirname(path), (match[1] or match[2]).decode("latin-1")):
                    includes[place] = None
            self._headers[path] = _Header(tuple(includes), frozenset(defines))
        return self._headers[path]

    def _find(self, folder: str, name: str) -> str | None:
        """A header by the folder of the file that includes it; None if it is not the package's."""
        key = (folder, name)
        if key not in self._places:
            if folder not in self._roots:
                self._roots[folder] = tuple(dict.fromkeys(self._folders(folder)))
            candidates = (normpath(join(root, name)) for root in self._roots[folder])
            self._places[key] = next(filter(self._is_there, candidates), None)
        return self._places[key]

    def _is_there(self, path: str) -> bool:
        return isfile(f"{self.base}/{path}")  # noqa: PTH113

    def _folders(self, folder: str) -> Iterator[str]:
        """Where headers may be: a file's own folder, and what is called include around it."""
        yield folder
        while folder:
            yield folder
            if (self.base / folder / "include").is_dir():
                yield f"{folder}/include"
            for part in sorted((self.base / folder).glob("*/include")):
                yield part.relative_to(self.base).as_posix()
            folder = dirname(folder)


class Included(Outside):
    """The headers that one file includes."""

    def __init__(self, headers: Headers, path: str, read: set[str]):
        self._headers = headers
        self._path = path
        self._read = read

    def meaning(self, name: str, compilation: CudaPass) -> Macro | None:
        """Return what a macro means in a pass; None if the headers do not tell."""
        header, read = self._headers.defining(self._path, name)
        found = None
        if header is not None:
            header.named = False
            found = header.meaning(name, compilation)
            self.named = header.named
        self._read |= read
        return found
