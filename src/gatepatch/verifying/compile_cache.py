"""What compilations came to, kept in the user's cache folder by the content of their inputs.

An entry holds the hash of every file that the compiler read, as it reported them. A header that
has come to stand before one of them in the include path is not noticed, as in ccache's depend mode.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from gatepatch.edits import sha256
from gatepatch.files import write_new
from gatepatch.verifying.ptx import Summary
from gatepatch.verifying.source_tree import SourceTree

SCHEMA = 1
KEPT = 16
"""How many results of one command are kept: each has other headers."""


class Cache:
    """Results by command and inputs. A folder that cannot be written keeps none.

    Args:
        folder: Where they lie.

    Attributes:
        failure: Why nothing could be kept; empty if all could.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self.failure = ""

    def find(self, key: str, tree: SourceTree) -> Summary | None:
        """The result of a command on a tree; None if it is not known.

        Args:
            key: The command, as ``key_of`` has it.
            tree: The sources.
        """
        for path in self._entries(key):
            try:
                document = json.loads(path.read_bytes())
                inputs: dict[str, str] = document["inputs"]
                if document["schema"] == SCHEMA and all(
                    tree.digest_of(name) == digest for name, digest in inputs.items()
                ):
                    return _summary(document["summary"])
            except (OSError, ValueError, KeyError, TypeError, AttributeError):
                continue  # damaged, or another version's: compiled again
        return None

    def keep(self, key: str, inputs: Mapping[str, str], summary: Summary) -> None:
        """Keep a result.

        Args:
            key: The command.
            inputs: Every file that was read, to its SHA-256.
            summary: The result.
        """
        document = {"schema": SCHEMA, "inputs": dict(inputs), "summary": asdict(summary)}
        data = json.dumps(document, sort_keys=True).encode()
        try:
            (self.folder / key).mkdir(parents=True, exist_ok=True)
            write_new(self.folder / key / f"{sha256(data)}.json", data)
            for old in self._entries(key)[KEPT:]:
                old.unlink(missing_ok=True)
        except OSError as error:
            self.failure = str(error)

    def _entries(self, key: str) -> list[Path]:
        """The results of a command, newest first."""
        found: list[tuple[int, Path]] = []
        with contextlib.suppress(OSError):
            for path in (self.folder / key).glob("*.json"):
                found.append((path.stat().st_mtime_ns, path))
        return [path for _, path in sorted(found, reverse=True)]


def _summary(value: dict[str, object]) -> Summary:
    kernels, empty, instructions = (value[k] for k in ("kernels", "empty", "instructions"))
    if not (
        isinstance(kernels, int) and isinstance(empty, list) and isinstance(instructions, dict)
    ):
        raise ValueError("is no summary")
    return Summary(kernels=kernels, empty=tuple(empty), instructions=instructions)
