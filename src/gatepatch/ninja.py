"""What ninja leaves beside a build: its manifest, its log and its record of headers.

Read, never written. The formats are those of ninja's manual (build.ninja), ``build_log.cc``
(versions 5 to 7) and ``deps_log.cc`` (versions 3 and 4).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

_WORD = re.compile(r"(?:\$.|[^\s:|$])+|:|\|@|\|\||\|")
_ESCAPE = re.compile(r"\$(?:([$ :])|\{([\w.-]+)\}|([\w-]+))")
_BINDING = re.compile(r"([\w.-]+)\s*=\s*(.*)")
_CONTINUED = re.compile(r"\$\n[ ]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """One build statement.

    Args:
        outputs: What it makes.
        command: Of its rule, with the variables of the file filled in.
        depfile: Whether the command reports the headers that it has read.
        inputs: What it depends on by the manifest; order-only inputs are left out.
    """

    outputs: tuple[str, ...]
    command: str
    depfile: bool
    inputs: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry:
    """When an output was made last.

    Args:
        took: Nanoseconds that the command ran.
        mtime: Nanoseconds: of the output, up to ninja 1.11; of the command's start from 1.12 on.
    """

    took: int
    mtime: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Deps:
    """The headers that the compiler has reported for an output.

    Args:
        mtime: Nanoseconds: of the output when they were recorded.
        inputs: The headers, and the source.
    """

    mtime: int
    inputs: tuple[str, ...]


@dataclass(slots=True, kw_only=True)
class _Block:
    head: str
    bindings: dict[str, str] = field(default_factory=dict)


def read_manifest(text: str) -> tuple[Edge, ...]:
    """Read the build statements of a ``build.ninja``; included files are not followed.

    Raises:
        ValueError: It is none.
    """
    scope: dict[str, str] = {}
    rules: dict[str, Mapping[str, str]] = {}
    edges = []
    for block in _blocks(text):
        kind, _, rest = block.head.partition(" ")
        if kind == "rule":
            rules[rest.strip()] = block.bindings
        elif kind == "build":
            edges.append(_edge(rest, rules, scope | _expanded(block.bindings, scope)))
        elif match := _BINDING.fullmatch(block.head):
            scope[match[1]] = _expand(match[2], scope)
    return tuple(edges)


def _blocks(text: str) -> Iterator[_Block]:
    """Statements, each with the indented bindings that follow it."""
    block: _Block | None = None
    for line in _CONTINUED.sub("", text).splitlines():
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if not line.startswith(" "):
            if block:
                yield block
            block = _Block(head=line.strip())
        elif block and (match := _BINDING.fullmatch(line.strip())):
            block.bindings[match[1]] = match[2]
        else:
            raise ValueError(f"no ninja statement: {line.strip()!r}")
    if block:
        yield block


def _edge(text: str, rules: Mapping[str, Mapping[str, str]], scope: Mapping[str, str]) -> Edge:
    words = _WORD.findall(text)
    if ":" not in words or words.index(":") + 1 == len(words):
        raise ValueError(f"no build statement: {text!r}")
    colon = words.index(":")
    outputs, rule, inputs = words[:colon], words[colon + 1], words[colon + 2 :]
    for mark in ("||", "|@"):
        if mark in inputs:
            inputs = inputs[: inputs.index(mark)]
    own = rules.get(rule, {})
    return Edge(
        outputs=tuple(_expand(word, scope) for word in outputs if word != "|"),
        command=_expand(own.get("command", ""), scope),
        depfile="depfile" in own,
        inputs=tuple(_expand(word, scope) for word in inputs if word != "|"),
    )


def _expanded(bindings: Mapping[str, str], scope: Mapping[str, str]) -> dict[str, str]:
    return {name: _expand(value, scope) for name, value in bindings.items()}


def _expand(text: str, scope: Mapping[str, str]) -> str:
    return _ESCAPE.sub(lambda m: m[1] or scope.get(m[2] or m[3], ""), text)


def read_log(text: str) -> dict[str, LogEntry]:
    """Read a ``.ninja_log``: output to its last entry.

    Raises:
        ValueError: It has a version that is not known.
    """
    head, _, body = text.partition("\n")
    if head not in ("# ninja log v5", "# ninja log v6", "# ninja log v7"):
        raise ValueError(f"no .ninja_log of a known version: {head[:40]!r}")
    found = {}
    for line in body.splitlines():
        fields = line.split("\t")
        if len(fields) == 5:  # the last line may be cut off
            start, end, mtime, output, _ = fields
            took = (int(end) - int(start)) * 1_000_000
            found[output] = LogEntry(took=took, mtime=int(mtime))
    return found


def read_deps(data: bytes) -> dict[str, Deps]:
    """Read a ``.ninja_deps``: output to its last record.

    A file of 4-byte words. A record is its size and its body; a path's body is the path, padded
    by zeros, and the complement of its number; the highest bit of the size marks the headers of
    an output: the output's number, its mtime, the headers' numbers. What follows a record that
    is cut off is not believed, as in ninja itself.

    Raises:
        ValueError: It has a version that is not known.
    """
    magic = b"# ninjadeps\n"
    (version,) = struct.unpack_from("<i", data.ljust(16, b"\0"), 12)
    if not data.startswith(magic) or version not in (3, 4):
        raise ValueError(f"no .ninja_deps of a known version: {data[:16]!r}")
    mtime = struct.Struct("<i" if version == 3 else "<q")
    paths: list[str] = []
    found = {}
    for headers, body in _records(data[16:]):
        if not headers:
            (complement,) = struct.unpack("<i", body[-4:])
            if complement != ~len(paths):
                break
            paths.append(body[:-4].rstrip(b"\0").decode(errors="surrogateescape"))
            continue
        start = 4 + mtime.size
        (output,) = struct.unpack_from("<i", body)
        numbers = struct.unpack(f"<{(len(body) - start) // 4}i", body[start:])
        if not all(0 <= number < len(paths) for number in (output, *numbers)):
            break
        found[paths[output]] = Deps(
            mtime=mtime.unpack_from(body, 4)[0], inputs=tuple(paths[number] for number in numbers)
        )
    return found


def _records(data: bytes) -> Iterator[tuple[bool, bytes]]:
    place = 0
    while place + 4 <= len(data):
        (word,) = struct.unpack_from("<I", data, place)
        size = word & 0x7FFFFFFF
        body = data[place + 4 : place + 4 + size]
        if len(body) < size or size % 4 or size < 8:
            return
        yield bool(word >> 31), body
        place += 4 + size
