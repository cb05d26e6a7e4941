"""The tokens of C and CUDA source, with the bytes that each comes from.

Source: ISO C++20, [lex.phases] and [lex.pptoken].
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

_CONTINUATION = re.compile(r"\\[ \t\f\v]*\r?\n")

_LEXICON = re.compile(
    r"""
      (?P<newline>\n)
    | (?P<space>[ \t\f\v\r\0]+ | //[^\n]* | /\*.*?(?:\*/|\Z))
    | (?P<string>(?:u8|[uUL])?R"(?P<delimiter>[^ ()\\\t\v\f\n"]{0,16})\(.*?\)(?P=delimiter)"
               | (?:u8|[uUL])?"(?:\\[^\n]|[^"\\\n])*"?)
    | (?P<character>(?:u8|[uUL])?'(?:\\[^\n]|[^'\\\n])*'?)
    | (?P<number>\.?[0-9](?:[eEpP][+-]|'?[0-9A-Za-z_.\x80-\xff])*)
    | (?P<name>[A-Za-z_$\x80-\xff][0-9A-Za-z_$\x80-\xff]*)
    | (?P<operator>&&|\|\||==|!=|<=|>=|<<|>>|%:|.)
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Spliced:
    """Source with its line continuations taken out, one character a byte.

    Args:
        text: What is left.
        cuts: Where in ``text`` something was taken out, in order.
        removed: How many bytes had been taken out up to and including each cut.
    """

    text: str
    cuts: tuple[int, ...]
    removed: tuple[int, ...]

    def start(self, index: int) -> int:
        """The offset in the source of the character at an index of the text."""
        cut = bisect_right(self.cuts, index)
        return index + (self.removed[cut - 1] if cut else 0)

    def end(self, index: int) -> int:
        """The offset in the source just behind the character before an index of the text."""
        return self.start(index - 1) + 1 if index else 0


def splice_lines(source: bytes) -> Spliced:
    """Take the line continuations out."""
    # Latin-1 keeps one character a byte, whatever the file's encoding.
    text = source.decode("latin-1")
    parts, cuts, removed = [], [], []
    last = total = 0
    for match in _CONTINUATION.finditer(text):
        parts.append(text[last : match.start()])
        cuts.append(match.start() - total)
        total += match.end() - match.start()
        removed.append(total)
        last = match.end()
    return Spliced("".join([*parts, text[last:]]), tuple(cuts), tuple(removed))


class Token(NamedTuple):
    """A preprocessing token: ``newline``, ``string``, ``character``, ``number``, ``name`` or ``operator``.

    Args:
        text: Its spelling, without continuations.
        start: Its first byte in the source.
        end: The byte behind its last.
        index: Where it stands in the spliced text.

    A tuple, since it is made in a third of the time: there are hundreds of them in a file.
    """

    kind: str
    text: str
    start: int
    end: int
    # What a tuple calls so is of no use to anyone here.
    index: int  # type: ignore[assignment]


def tokens(source: Spliced, index: int = 0) -> Iterator[Token]:
    """Yield the tokens from an index of the text on, without comments and white space."""
    plain = not source.cuts
    for match in _LEXICON.finditer(source.text, index):
        if (kind := match.lastgroup or "") != "space":
            start, end = match.span()
            # The group that holds a raw string's delimiter closes before the one around it.
            if plain:
                yield Token(kind, match[0], start, end, start)
            else:
                yield Token(kind, match[0], source.start(start), source.end(end), start)
