"""Pins: what a set does to one released version, worked out and reviewed ahead of time.

A pin is found by the hash of the bytes before, not by the version: a vendor's rebuild with the
same bytes uses it too. It holds for the edits that it was made from, and for no others: where the
set has changed since, the file is planned anew. Applying a pin needs no parser.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gatepatch.edits import ByteEdit, sha256, splice, unsplice
from gatepatch.errors import Problem, SpecError
from gatepatch.records import asdict, dataclass, replace
from gatepatch.results import Place
from gatepatch.spec import FileSpec
from gatepatch.state import edits_from_json, edits_json

SCHEMA = 1
FOLDER = "pins"


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedFile:
    """One file of a pin.

    Args:
        path: From where the distribution is imported.
        before: SHA-256 of the pristine bytes.
        after: SHA-256 of the result; equal to ``before`` where nothing has to change.
        recipe: SHA-256 of the set's edits that it was made from, with what they are to bring about.
        edits: What is to be spliced.
        places: The places, with their verdicts before and after; ``where`` is the place within
            the file's block of the set.
    """

    path: str
    before: str
    after: str
    recipe: str
    edits: tuple[ByteEdit, ...]
    places: tuple[Place, ...]

    def result(self, pristine: bytes) -> bytes:
        """Splice, and check the hash of the result.

        Raises:
            SpecError: The pin contradicts itself.
        """
        result = splice(pristine, self.edits)
        if sha256(result) != self.after:
            raise SpecError(
                Problem(
                    message=f"its edits give {sha256(result)}, and it says {self.after}",
                    where=self.path,
                    hint="the pin is damaged: run gatepatch pin again, or reinstall gatepatch",
                )
            )
        return result

    def places_in(self, spec: FileSpec) -> tuple[Place, ...]:
        """The places as a set has them whose block for the file is this one."""
        return tuple(replace(p, where=f"{spec.where}.{p.where}") for p in self.places)

    def undo(self, result: bytes) -> bytes | None:
        """The pristine bytes that the result was made from; None if it was not."""
        try:
            pristine = unsplice(result, self.edits)
        except ValueError:
            return None
        return pristine if sha256(pristine) == self.before else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """A set's result for one released version of one distribution.

    Args:
        digest: SHA-256 of the set's YAML when the pin was made.
        tool: Version of gatepatch that made it.
    """

    set: str
    digest: str
    tool: str
    distribution: str
    version: str
    files: tuple[PinnedFile, ...]

    def to_bytes(self) -> bytes:
        """Serialise as JSON, a line an edit and a line a place, for review."""
        head = {
            "schema": SCHEMA,
            "set": self.set,
            "digest": self.digest,
            "tool": self.tool,
            "distribution": self.distribution,
            "version": self.version,
        }
        lines = [f" {json.dumps(key)}: {json.dumps(value)}," for key, value in head.items()]
        files = ",\n".join(map(_file_text, self.files))
        return "\n".join(["{", *lines, f' "files": [\n{files}\n ]', "}", ""]).encode()


def _file_text(file: PinnedFile) -> str:
    rows: dict[str, list[Any]] = {
        "edits": edits_json(file.edits),
        "places": [_place_json(place) for place in file.places],
    }
    parts = [
        f"   {json.dumps(key)}: [\n{_rows(values)}\n   ]" if values else f"   {json.dumps(key)}: []"
        for key, values in rows.items()
    ]
    names = {k: getattr(file, k) for k in ("path", "before", "after", "recipe")}
    lines = [f"   {json.dumps(key)}: {json.dumps(value)}" for key, value in names.items()]
    return "  {\n" + ",\n".join([*lines, *parts]) + "\n  }"


def _place_json(place: Place) -> dict[str, Any]:
    """A place without its source, which the file itself has."""
    return {k: v for k, v in asdict(place).items() if v and k not in ("before", "after")}


def _rows(values: list[Any]) -> str:
    return ",\n".join(f"    {json.dumps(value, sort_keys=True)}" for value in values)


def load(path: Path) -> Pin:
    """Read a pin.

    Raises:
        SpecError: It cannot be read.
    """
    try:
        document = json.loads(path.read_bytes())
        if document["schema"] != SCHEMA:
            raise ValueError(f"schema {document['schema']} is not {SCHEMA}")
        return Pin(
            set=document["set"],
            digest=document["digest"],
            tool=document["tool"],
            distribution=document["distribution"],
            version=document["version"],
            files=tuple(map(_file, document["files"])),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SpecError(Problem(message=f"is no pin: {error}", where=str(path))) from None


_NO_PLACE: dict[str, Any] = {
    "within": "",
    "before": "",
    "after": "",
    "verdict_before": {},
    "verdict_after": {},
    "unproved": "",
}


def _file(value: dict[str, Any]) -> PinnedFile:
    return PinnedFile(
        path=value["path"],
        before=value["before"],
        after=value["after"],
        recipe=value["recipe"],
        edits=edits_from_json(value["edits"]),
        places=tuple(Place(**{**_NO_PLACE, **place}) for place in value["places"]),
    )


class Pins:
    """The pins of one set, each read once, when it is asked for.

    Args:
        folder: The set's folder of pins; it need not be there.
    """

    def __init__(self, folder: Path | None):
        self.folder = folder
        self._read: dict[Path, Pin] = {}

    def find(
        self, distribution: str, version: str, path: str, before: str, recipe: str
    ) -> PinnedFile | None:
        """The pinned file that was made by these edits from these bytes."""
        files = self._files(distribution, version, path)
        return next((f for f in files if (f.before, f.recipe) == (before, recipe)), None)

    def knows(self, distribution: str, version: str, path: str, before: str) -> bool:
        """Whether a release had these bytes before."""
        return any(f.before == before for f in self._files(distribution, version, path))

    def find_result(
        self, distribution: str, version: str, path: str, after: str
    ) -> PinnedFile | None:
        """The pinned file that makes these bytes."""
        return next(
            (
                f
                for f in self._files(distribution, version, path)
                if f.after == after and f.before != after
            ),
            None,
        )

    def _files(self, distribution: str, version: str, path: str) -> Iterator[PinnedFile]:
        """All that the pins have of a file, those of the version first."""
        for pin in self._paths(distribution, version):
            if pin not in self._read:
                self._read[pin] = load(pin)
            yield from (file for file in self._read[pin].files if file.path == path)

    def _paths(self, distribution: str, version: str) -> Iterator[Path]:
        if self.folder is None or not self.folder.is_dir():
            return
        first = self.folder / file_name(distribution, version)
        if first.is_file():
            yield first
        yield from sorted(
            path for path in self.folder.glob(f"{distribution}-*.json") if path != first
        )


def file_name(distribution: str, version: str) -> str:
    """The name of a version's pin."""
    return f"{distribution}-{version}.json"
