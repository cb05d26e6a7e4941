"""C and C++ source without comments and literals, and the functions in it: lexical, no parser."""

from __future__ import annotations

import re
from bisect import bisect_right

_HIDDEN = re.compile(
    rb"""//[^\n]*(?:\\\n[^\n]*)* | /\*.*?(?:\*/|\Z)
       | R"(?P<delimiter>[^ ()\\\t\v\f\n"]{0,16})\(.*?\)(?P=delimiter)"
       | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])'""",
    re.VERBOSE | re.DOTALL,
)
_BLANKS = bytes(byte if byte == ord("\n") else ord(" ") for byte in range(256))
"""For each byte what is put for it where it is to be blank."""

# A line that begins at the margin: a definition's first line, or the brace that ends one.
_MARGIN = re.compile(rb"\n(?=[}A-Za-z_\[~:])")
_HEADS = 3
"""How many lines a definition's head may have: a template's own, and that of what it returns."""
_NAMED = re.compile(rb"([A-Za-z_~][\w:~]*)\s*(?:<[^<>()]*>)?\s*\(")
_TYPE = re.compile(
    rb"\b(?:struct|class|union|enum(?:\s+class)?)\s+(?:\w+\s*\([^)]*\)\s*)?([A-Za-z_]\w*)"
)
_NO_NAME = frozenset(
    b"__launch_bounds__ __attribute__ __declspec alignas decltype requires noexcept explicit "
    b"static_assert __cluster_dims__ __block_size__ if while for switch return defined sizeof "
    b"enable_if_t".split()
)
_FAR = 4000


def blanked(source: bytes) -> bytes:
    """Put blanks for comments and literals; every byte stays where it is, and so do lines."""
    return _HIDDEN.sub(lambda match: match[0].translate(_BLANKS), source)


class Outline:
    """The definitions at the margin of a file: by indentation, as code is written.

    Args:
        source: The file.
    """

    def __init__(self, source: bytes):
        self._source = source
        self._starts: list[int] | None = None

    def within(self, offset: int) -> str:
        """The function or type around an offset; empty if there is none."""
        if self._starts is None:
            # The file's first line is one more, behind the newline that is put before it.
            source = b"\n" + self._source
            self._starts = [match.start() for match in _MARGIN.finditer(source)]
        place = bisect_right(self._starts, offset)
        for start in reversed(self._starts[max(0, place - _HEADS) : place]):
            head = self._source[start : min(offset, start + _FAR)]
            if head.startswith((b"}", b"namespace", b"extern", b"using", b"typedef")):
                return ""
            head = blanked(head)
            before, brace, _ = head.partition(b"{")
            if not brace:
                return ""
            if name := _name(before):
                return name
        return ""


def _name(head: bytes) -> str:
    if b";" in head:
        return ""
    for match in _NAMED.finditer(head):
        if match[1] not in _NO_NAME and not match[1].endswith(b"::"):
            return match[1].decode("latin-1")
    found = _TYPE.search(head)
    return found[1].decode("latin-1") if found else ""


_CONDITIONAL = re.compile(rb"^[ \t]*#[ \t]*(if|el|endif)\w*([^\n]*)", re.MULTILINE)
_NEVER = re.compile(rb"[ \t]*0\s*")


def without_dead(source: bytes) -> bytes:
    """Blank what stands in an ``#if 0``, up to its ``#else`` or ``#endif``."""
    dead: list[tuple[int, int]] = []
    depth, start = 0, -1
    for match in _CONDITIONAL.finditer(source):
        if match[1] == b"if":
            if (
                start < 0
                and match[0].lstrip(b" \t#").startswith(b"if ")
                and _NEVER.fullmatch(match[2])
            ):
                depth, start = 0, match.end()
            elif start >= 0:
                depth += 1
        elif start >= 0 and depth == 0:
            dead.append((start, match.start()))
            start = -1
        elif start >= 0 and match[1] == b"endif":
            depth -= 1
    parts, last = [], 0
    for start, end in dead:
        parts += [source[last:start], source[start:end].translate(_BLANKS)]
        last = end
    return b"".join([*parts, source[last:]])


_DIRECTIVE = re.compile(rb"^[ \t]*#[^\n]*(?:(?<=\\)\n[^\n]*|(?<=\\\r)\n[^\n]*)*\n?", re.MULTILINE)
_DEFINE = re.compile(rb"[ \t]*#[ \t]*define[ \t]+\w+(?:\([^)]*\))?")


def without_directives(source: bytes) -> bytes:
    """Blank comments, literals and directives but the text of a ``#define``, which is code.

    That stands between two semicolons, since nothing around it belongs to it.
    """

    def hidden(match: re.Match[bytes]) -> bytes:
        if head := _DEFINE.match(match[0]):
            body = match[0][head.end() :]
            body = body[:-1] + b";" if body.endswith(b"\n") else body
            return b" " * (head.end() - 1) + b";" + body
        return match[0].translate(_BLANKS)

    text = _DIRECTIVE.sub(hidden, without_dead(blanked(source)))
    return text.replace(b"\\\n", b" \n").replace(b"\\\r\n", b" \r\n")


_ARGUMENTS = re.compile(
    rb"<(?<=\w<)(?:[\w\s:,*&.]|<(?:[\w\s:,*&.]|<[\w\s:,*&.]*>)*>)*>(?=\s*(?:::|\(|\{))"
    rb"|<(?<=_v<)(?:[\w\s:,*&.]|<(?:[\w\s:,*&.]|<[\w\s:,*&.]*>)*>)*>"
)


def without_template_arguments(text: bytes) -> bytes:
    """Make one name of a template and its arguments, as in ``is_same<A, B>::value``.

    Those that hold a comparison are left.
    """
    return _ARGUMENTS.sub(lambda match: b"_" * len(match[0]), text)
