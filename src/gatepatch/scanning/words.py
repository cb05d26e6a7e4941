"""Which lines of a file have one of many words: most files have none, and are done with at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ahocorasick_rs import BytesAhoCorasick, MatchKind


class Words:
    """Words that files are searched for, all at the same time.

    Args:
        words: The words; none of them spans lines.
    """

    def __init__(self, words: Sequence[bytes]):
        # Where one word begins another, the longer one is what stands there.
        self._matcher = BytesAhoCorasick(words, matchkind=MatchKind.LeftmostLongest)

    def places(self, source: bytes) -> Sequence[tuple[int, int, int]]:
        """Which word stands where: its number, and where it begins and ends."""
        return self._matcher.find_matches_as_indexes(source)

    def lines(self, source: bytes) -> Iterator[tuple[int, int]]:
        """Yield where each line that has a word begins and ends, in order."""
        end = -1
        for _, place, _ in self.places(source):
            if place > end:
                start, end = line_at(source, place)
                yield start, end


def line_at(source: bytes, place: int) -> tuple[int, int]:
    """Where the line around an offset begins and ends."""
    end = source.find(b"\n", place)
    return source.rfind(b"\n", 0, place) + 1, len(source) if end < 0 else end
