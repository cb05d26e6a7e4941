"""Which of some words a file has: many of them, looked for a few at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

_AROUND = b" (!_.[:"


class Words:
    """Words that files are searched for.

    Most files have none of them, and looking through all of the text once for each takes most of
    a scan: so a word is looked for where its core is there, and what it shares with others.

    Args:
        words: The words.
        cores: In lower case: the first that a word has, whatever its case, is its core.
        vain: What words share that a file has mostly in another word, with that one.
    """

    def __init__(
        self,
        words: Sequence[bytes],
        cores: Sequence[bytes],
        vain: Mapping[bytes, bytes] | None = None,
    ):
        self._vain = vain or {}
        self._tree: Mapping[bytes, dict[bytes, list[bytes]]] = {core: {} for core in cores}
        for word in dict.fromkeys(words):
            low = word.lower()
            core = next(core for core in cores if core in low)
            self._tree[core].setdefault(low.lstrip(_AROUND), []).append(word)

    def within(self, source: bytes) -> Iterator[bytes]:
        """Yield the words that a file may have."""
        low = source.lower()
        for core, shared in self._tree.items():
            if core in low:
                for part, words in shared.items():
                    if part == core or (part in low and not self._is_vain(part, low)):
                        yield from words

    def _is_vain(self, part: bytes, low: bytes) -> bool:
        other = self._vain.get(part)
        return other is not None and low.count(part) == low.count(other)
