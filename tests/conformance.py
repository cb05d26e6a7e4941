"""Apply and revert the all-reduce set on every release of sglang and flashinfer-python.

``make conformance`` runs it, and writes the table into docs/conformance.md. Releases are downloaded
once, into the cache that ``GATEPATCH_TEST_CACHE`` names.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from packaging.version import Version

import gatepatch
from gatepatch import catalog, release
from gatepatch.edits import line_of
from gatepatch.errors import GatepatchError
from gatepatch.pinning import make_pin
from gatepatch.pins import PinnedFile
from gatepatch.release import Release
from gatepatch.spec import PatchSet
from trees import make_distribution

SET = "sm120-allreduce"
FIRST = {"sglang": Version("0.4.9"), "flashinfer-python": Version("0.3.1")}

# An independent reading of every release, and the FlashInfer that each SGLang pins.
READING = json.loads((Path(__file__).parent / "data" / "gates.json").read_text())


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One release."""

    release: Release
    partner: Release
    outcome: str
    places: str


MEANINGS = {
    "sglang": (
        "sglang/srt/layers/utils.py",
        "sglang/srt/utils.py",
        "sglang/srt/utils/__init__.py",
        "sglang/srt/utils/common.py",
    )
}
"""Where predicates are defined: verify reads them anew, whatever a pin says."""


def partner_of(version: Version, releases: dict[tuple[str, str], Release]) -> Release:
    """The FlashInfer that an SGLang pins, or the first that the set is for."""
    newest = max((v for name, v in releases if name == "flashinfer-python"), key=Version)
    pinned = Version(READING["pairs"].get(str(version), newest))
    return releases["flashinfer-python", str(max(pinned, FIRST["flashinfer-python"]))]


def versions(distribution: str) -> list[Version]:
    """The releases of the package index, and the pre-releases that were read."""
    read = {v for entry in READING["gates"][distribution] for v in entry["lines"]}
    known = {*release.versions(distribution), *map(Version, read)}
    return sorted(v for v in known if v >= FIRST[distribution])


def check_lines(each: Release, file: PinnedFile, before: bytes) -> None:
    """The edits stand on the lines where the reading has gates to open, and on none to leave."""
    edited = {line_of(before, edit.offset) for edit in file.edits}
    for entry in READING["gates"][each.distribution]:
        lines = entry["lines"].get(str(each.version), [])
        if entry["path"] != file.path:
            continue
        for line in lines:
            where = f"{file.path}:{line} ({entry['function']})"
            match entry["action"]:
                case "open":
                    assert line in edited, f"{where} is not opened"
                case "copy":
                    near = range(line + 1, line + 10)
                    assert edited.intersection(near), f"nothing is put behind {where}"
                case _:
                    assert line not in edited, f"{where} was to stay"


def main() -> int:
    """Run over every release in the cache; return 1 if any fails."""
    base = os.environ.get("GATEPATCH_TEST_CACHE") or Path.home() / ".cache" / "gatepatch-tests"
    folder = Path(base) / "wheels"
    if "--fetch" in sys.argv:
        for name in FIRST:
            for version in versions(name):
                release.fetch(name, version, folder)
    patch_set = catalog.load(SET)
    releases = {
        (r.distribution, str(r.version)): r
        for r in release.releases_in(folder)
        if r.distribution in FIRST and r.version >= FIRST[r.distribution]
    }
    rows = list(_rows(patch_set, releases))
    table = "\n".join(
        f"| {r.release.distribution} | {r.release.version} | {r.partner.version} | {r.outcome} | {r.places} |"
        for r in rows
    )
    if "--write" in sys.argv:
        page = Path(__file__).parents[1] / "docs" / "conformance.md"
        head = page.read_text().partition("| distribution |")[0] if page.is_file() else ""
        columns = "| distribution | release | beside | outcome | places by file, lines |"
        page.write_text(f"{head}{columns}\n| --- | --- | --- | --- | --- |\n{table}\n")
    failed = [row for row in rows if row.outcome.startswith("FAILED")]
    print(f"{len(rows) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


def _rows(patch_set: PatchSet, releases: dict[tuple[str, str], Release]) -> Iterator[Row]:
    order = sorted(releases.values(), key=lambda r: (r.distribution, r.version))
    for each in order:
        if each.distribution == "sglang":
            partner = partner_of(each.version, releases)
        else:
            partner = releases["sglang", "0.5.9"]
        try:
            outcome, places = _cycle(patch_set, each, partner)
        except (GatepatchError, AssertionError, SyntaxError) as error:
            outcome, places = f"FAILED: {error}".replace("\n", " "), ""
        print(f"{each.distribution} {each.version}  {outcome}  {places}", flush=True)
        yield Row(release=each, partner=partner, outcome=outcome, places=places)


def _cycle(patch_set: PatchSet, each: Release, partner: Release) -> tuple[str, str]:
    """Plan, apply, compile, apply again, verify, revert, compare with the release's own bytes."""
    pin = make_pin(patch_set, each)
    with tempfile.TemporaryDirectory() as scratch:
        site = Path(scratch, "lib", "python3.12", "site-packages")
        for item in (each, partner):
            _install(patch_set, item, site)
        before = {f.path: (site / f.path).read_bytes() for f in pin.files}
        pinned = gatepatch.plan(SET, prefix=scratch)
        result = gatepatch.apply(SET, prefix=scratch, assume="sm_120")
        assert result.outcome in ("applied", "native"), result.outcome
        for file in pin.files:
            after = (site / file.path).read_bytes()
            # The plan that was just proved, and the pin that was applied, make the same bytes.
            assert file.result(before[file.path]) == after, f"{file.path} is not as planned"
            check_lines(each, file, before[file.path])
            if file.path.endswith(".py"):
                compile(after, file.path, "exec")
        again = gatepatch.apply(SET, prefix=scratch, assume="sm_120")
        assert again.outcome in ("already-applied", "native"), again.outcome
        found = gatepatch.verify(SET, prefix=scratch).findings
        assert not found, f"{found[0].kind}: {found[0].where}: {found[0].found}"
        gatepatch.revert(prefix=scratch)
        assert all((site / p).read_bytes() == data for p, data in before.items()), "not reverted"
    own = [f for f in pinned.sets[0].files if f.distribution == each.distribution]
    word = "applied" if any(f.edits for f in pin.files) else "native"
    with_pin = "pinned" if all(f.pinned for f in own) else "not pinned"
    places = "; ".join(
        f"{Path(file.path).name} {', '.join(str(place.line) for place in file.places)}"
        for file in pin.files
    )
    return f"{word}, {with_pin}", places


def _install(patch_set: PatchSet, each: Release, site: Path) -> None:
    """Install the files that the set touches and those that say what its predicates mean."""
    paths = {
        file.path
        for spec in patch_set.targets
        if spec.distribution == each.distribution
        and spec.versions.contains(each.version, prereleases=True)
        for file in spec.files
    }
    paths |= set(MEANINGS.get(each.distribution, ()))
    files = {path: data for path in sorted(paths) if (data := each.read(path)) is not None}
    make_distribution(site, each.distribution, str(each.version), files)


if __name__ == "__main__":
    sys.exit(main())
