"""Which block of a set is for an installed version."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from gatepatch.errors import RefusedError
from gatepatch.spec import TargetSpec
from gatepatch.target import Target


def candidates(target: Target, specs: Sequence[TargetSpec]) -> Iterable[TargetSpec]:
    """The blocks to try, the likeliest first.

    Raises:
        RefusedError: No block is for this version, or several are.
    """
    version = Version(target.version)
    matching = [spec for spec in specs if spec.versions.contains(version, prereleases=True)]
    if len(matching) == 1:
        return matching
    if matching:
        raise RefusedError(
            f"the set has {len(matching)} blocks for {target.distribution} {target.version}: "
            + ", ".join(f"{spec.versions}" for spec in matching),
            hint="make their version ranges exclude each other",
        )
    # A checkout may report 0.0.0.dev1+g…: then the content decides.
    if target.editable or version.is_devrelease:
        return reversed(specs)
    ranges = "; ".join(_range(spec.versions) for spec in specs)
    lowest = _lowest(specs)
    raise RefusedError(
        f"{target.distribution} {target.version} is outside every range of the set: {ranges}",
        hint=f"install {target.distribution} {str(lowest).removesuffix('.dev0')} or later"
        if lowest is not None and version < lowest
        else "use a newer gatepatch, or a set of your own: gatepatch new",
    )


def _range(versions: SpecifierSet) -> str:
    """A range in words of its own order: the lower bounds first."""
    return ",".join(sorted(map(str, versions), key=lambda text: (text[0] != ">", text)))


def _lowest(specs: Sequence[TargetSpec]) -> Version | None:
    """The lowest bound of all ranges; None if one is open downwards."""
    bounds = [
        [Version(s.version) for s in spec.versions if s.operator in (">=", "~=")] for spec in specs
    ]
    return min(map(max, bounds)) if all(bounds) else None
