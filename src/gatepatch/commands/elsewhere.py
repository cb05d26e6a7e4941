"""The commands that a message names, as they have to be typed for the environment at hand."""

from __future__ import annotations

import re
import shlex
from argparse import Namespace
from collections.abc import Callable, Mapping

_BOTH = ("python", "prefix", "patches")
_PLACE = ("python", "prefix")
_SETS = ("patches",)
TAKES: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(
        ("apply", "doctor", "lint", "plan", "revert", "status", "trial", "verify"), _BOTH
    ),
    **dict.fromkeys(("cache", "new", "recover", "scan"), _PLACE),
    **dict.fromkeys(("list", "pin", "show"), _SETS),
    "probe": (),
}
"""Which of the options that say where a command takes."""

_COMMAND = re.compile(rf"\bgatepatch ({'|'.join(TAKES)})\b")


def spelling(options: Namespace) -> Callable[[str], str]:
    """Make what puts a command line's own ``--python``, ``--prefix`` and ``--patches`` into the
    commands that a text names, where they take them and have none."""

    def spelled(text: str) -> str:
        return _COMMAND.sub(lambda match: match[0] + _chosen(match[1], text, options), text)

    return spelled


def _chosen(command: str, text: str, options: Namespace) -> str:
    words: list[str] = []
    for name in TAKES[command]:
        given = getattr(options, name, None) or []
        if f"--{name}" not in text:
            for value in [given] if isinstance(given, str) else given:
                words += [f"--{name}", shlex.quote(value)]
    return "".join(f" {word}" for word in words)
