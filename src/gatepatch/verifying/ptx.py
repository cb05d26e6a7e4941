"""Read what the CUDA compiler made of a translation unit: its kernels and instructions.

Source: PTX ISA, "Directives" (``.entry``) and "Instruction Statements".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

_ENTRY = re.compile(r"^[^/\n]*\.entry\s+([\w$%.]+)", re.MULTILINE)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_INSTRUCTION = re.compile(r"(?:@!?%?[\w$]+\s+)?([a-z][\w.:]*)(?=\s|$)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What a PTX file holds.

    Args:
        kernels: How many entry functions there are.
        empty: Those whose body is a bare return, in order: the file's conditions left them out.
        instructions: Every opcode with its modifiers, such as ``griddepcontrol.wait``, to how
            often it stands there.
    """

    kernels: int
    empty: tuple[str, ...]
    instructions: Mapping[str, int]

    def count(self, instruction: str) -> int:
        """How often an instruction stands there, with whatever modifiers.

        Args:
            instruction: An opcode, such as ``griddepcontrol``, or one with its first modifiers.
        """
        return sum(
            number
            for opcode, number in self.instructions.items()
            if opcode == instruction or opcode.startswith(f"{instruction}.")
        )


def read(text: str) -> Summary:
    """Summarise a PTX file.

    Args:
        text: The file.
    """
    text = _COMMENT.sub("", text)
    entries = list(_ENTRY.finditer(text))
    empty = [entry[1] for entry in entries if [*_instructions(_body(text, entry.end()))] == ["ret"]]
    return Summary(
        kernels=len(entries),
        empty=tuple(empty),
        instructions=dict(sorted(Counter(_instructions(text)).items())),
    )


def _body(text: str, start: int) -> str:
    """The text between the braces of the function whose name ends at an offset."""
    opened = text.find("{", start)
    if opened < 0:
        return ""
    depth = 0
    for brace in re.finditer(r"[{}]", text[opened:]):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return text[opened + 1 : opened + brace.start()]
    return text[opened + 1 :]


def _instructions(text: str) -> Iterator[str]:
    """The opcodes of a function's statements; inline assembly stands among them like others."""
    for line in text.splitlines():
        for statement in line.split(";"):
            found = _INSTRUCTION.match(statement.strip(" \t{}"))
            if found and not found[1].endswith(":"):
                yield found[1]
