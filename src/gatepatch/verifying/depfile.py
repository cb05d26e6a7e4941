"""What a compiler has read, as it reports it: a rule in make's syntax (``-MD``)."""

from __future__ import annotations

import re

_WORD = re.compile(r"(?:\\[ #:\\]|\$\$|[^\s\\]|\\(?![\n ]))+")
_ESCAPE = re.compile(r"\\([ #:])|\$(\$)")


def read(text: str) -> tuple[str, ...]:
    """The prerequisites of a depfile's rules, each once; what has none is left out.

    Args:
        text: The depfile. Names are escaped as gcc escapes them: ``\\ ``, ``\\#`` and ``$$``.

    Raises:
        ValueError: It has no rule.
    """
    lines = text.replace("\\\n", " ").splitlines()
    rules = [line.partition(":")[2] for line in lines if re.search(r":(\s|$)", line)]
    if not rules:
        raise ValueError("is no depfile")
    words = [word for rule in rules for word in _WORD.findall(rule)]
    return tuple(dict.fromkeys(_ESCAPE.sub(r"\1\2", word) for word in words))
