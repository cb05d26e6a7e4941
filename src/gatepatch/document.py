"""Read a YAML document strictly, and say where and why it is wrong, all errors at once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

from gatepatch.errors import Problem, SpecError, did_you_mean

MAX_BYTES = 1 << 20
"""The largest document that is read."""

_NAMES = {
    "str": "a text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "null": "nothing",
    "map": "a mapping",
    "seq": "a list",
    "timestamp": "a date",
}


class Cursor:
    """A place in a document: its node, its key path, and the list that collects problems.

    The reading methods never raise: they note what is wrong and return something harmless, so
    that one pass finds every problem. ``finish`` raises.
    """

    def __init__(self, node: yaml.Node, path: str, source: str, problems: list[Problem]):
        self.node = node
        self.path = path
        self._source = source
        self._problems = problems

    @property
    def kind(self) -> str:
        """The YAML type's short name: ``str``, ``int``, ``map`` …"""
        return str(self.node.tag).rpartition(":")[2]

    def error(self, message: str, hint: str | None = None) -> None:
        """Note a problem at this place."""
        line = self.node.start_mark.line + 1
        where = f"{self._source}:{line}" + (f" ({self.path})" if self.path else "")
        self._problems.append(Problem(message=message, where=where, hint=hint))

    def _expected(self, what: str, hint: str | None = None) -> None:
        found = _NAMES.get(self.kind, self.kind)
        if isinstance(self.node, yaml.ScalarNode):
            found = f"{found}, {self.node.value!r}" if self.kind != "null" else found
        self.error(f"expected {what}, found {found}", hint)

    def _child(self, node: yaml.Node, key: str | int) -> Cursor:
        step = f"[{key}]" if isinstance(key, int) else f".{key}" if self.path else key
        return Cursor(node, f"{self.path}{step}", self._source, self._problems)

    def mapping(
        self, *, keys: Iterable[str] = (), required: Iterable[str] = ()
    ) -> dict[str, Cursor]:
        """Read a mapping; with ``keys``, any other key is an error."""
        if not isinstance(self.node, yaml.MappingNode):
            self._expected("a mapping")
            return {}
        allowed = (*required, *keys)
        result: dict[str, Cursor] = {}
        for key_node, value in self.node.value:
            key = Cursor(key_node, self.path, self._source, self._problems)
            if not isinstance(key_node, yaml.ScalarNode):
                key._expected("a plain key")
            elif key_node.value in result:
                first = result[key_node.value].node.start_mark.line + 1
                key.error(f"the key {key_node.value!r} is there twice, first on line {first}")
            elif allowed and key_node.value not in allowed:
                key.error(f"unknown key {key_node.value!r}", did_you_mean(key_node.value, allowed))
            else:
                result[key_node.value] = self._child(value, key_node.value)
        if missing := [name for name in required if name not in result]:
            self.error(f"missing: {', '.join(missing)}")
        return result

    def sequence(self) -> list[Cursor]:
        """Read a list that is not empty."""
        if not isinstance(self.node, yaml.SequenceNode):
            self._expected("a list")
            return []
        if not self.node.value:
            self.error("the list is empty")
        return [self._child(node, index) for index, node in enumerate(self.node.value)]

    def text(self) -> str:
        """Read a text that is not empty."""
        if not isinstance(self.node, yaml.ScalarNode) or self.kind != "str":
            quoted = isinstance(self.node, yaml.ScalarNode) and self.kind != "null"
            self._expected("a text", f'quote it: "{self.node.value}"' if quoted else None)
            return ""
        if not self.node.value.strip():
            self.error("the text is empty")
        return str(self.node.value)

    def number(self) -> int:
        """Read a whole number above 0."""
        if self.kind != "int" or not self.node.value.isdigit() or int(self.node.value) < 1:
            self._expected("a whole number above 0")
            return 1
        return int(self.node.value)

    def flag(self) -> bool:
        """Read true or false."""
        if self.kind != "bool":
            self._expected("true or false")
        return bool(self.node.value.lower() in ("true", "yes", "on"))

    def choice(self, *options: str) -> str:
        """Read one of a few words."""
        value = self.text()
        if value and value not in options:
            self.error(
                f"expected {' or '.join(options)}, found {value!r}", did_you_mean(value, options)
            )
        return value


def read(path: Path) -> tuple[Cursor, list[Problem], bytes]:
    """Open a document; return its root, the list that problems will be added to, and its bytes.

    Raises:
        SpecError: It cannot be read, is too large, is not YAML, or uses anchors.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise SpecError(
            Problem(message=f"cannot be read: {error.strerror}", where=str(path))
        ) from None
    if len(data) > MAX_BYTES:
        raise SpecError(Problem(message=f"is larger than {MAX_BYTES} bytes", where=str(path)))
    try:
        node = _compose(data)
    except UnicodeDecodeError as error:
        raise SpecError(Problem(message=f"is not UTF-8: {error.reason}", where=str(path))) from None
    except yaml.YAMLError as error:
        raise SpecError(_yaml_problem(path, error)) from None
    except RecursionError:
        raise SpecError(Problem(message="is nested too deeply", where=str(path))) from None
    if node is None:
        raise SpecError(Problem(message="is empty", where=str(path)))
    problems: list[Problem] = []
    return Cursor(node, "", str(path), problems), problems, data


def lines_of_keys(path: Path) -> dict[str, int]:
    """The line, from 1, of everything in a document by its key path; a key's own line.

    Raises:
        SpecError: It cannot be read.
    """
    root, _, _ = read(path)
    return {key: line + 1 for key, line in _lines(root.node, "", root.node.start_mark.line)}


def _lines(node: yaml.Node, path: str, line: int) -> Iterator[tuple[str, int]]:
    yield path, line
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            step = f"{path}.{key.value}" if path else str(key.value)
            yield from _lines(value, step, key.start_mark.line)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield from _lines(value, f"{path}[{index}]", value.start_mark.line)


def _compose(data: bytes) -> yaml.Node | None:
    text = data.decode("utf-8")
    tokens = yaml.scan(text, Loader=_Loader) if _MAY_NAME.search(text) else ()
    for token in tokens:
        # An alias to an alias to … is how a small document becomes gigabytes.
        if isinstance(token, yaml.AliasToken | yaml.AnchorToken):
            raise yaml.MarkedYAMLError(
                problem="anchors and aliases are not allowed", problem_mark=token.start_mark
            )
    return yaml.compose(text, Loader=_Loader)


# Where an anchor or an alias could stand; looking at every token takes as long as composing them.
_MAY_NAME = re.compile(r"(?:^|[\s\[{,:-])[&*][^\s&]", re.MULTILINE)

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _yaml_problem(path: Path, error: yaml.YAMLError) -> Problem:
    mark = getattr(error, "problem_mark", None)
    where = f"{path}:{mark.line + 1}" if mark else str(path)
    return Problem(message=getattr(error, "problem", None) or "is not YAML", where=where)
