"""Patch sets: their records. ``loader`` reads them from YAML."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, TypeAlias

from gatepatch.arch import Arch
from gatepatch.records import asdict, dataclass

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What an edit is to bring about.

    Args:
        action: ``open`` or ``close``.
        archs: The architectures named; for every other one nothing may change.
        like: For ``open``: the architecture whose verdicts the new ones are to share.
    """

    action: Literal["open", "close"]
    archs: frozenset[Arch]
    like: Arch | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GateEdit:
    """Open or close the gates that match.

    Args:
        where: The edit's place in its set, such as ``targets[0].files[1].edits[0]``.
        action: ``open`` or ``close``.
        within: Qualified name of the enclosing Python function or class; None for anywhere.
        condition: Source of a condition: adjacent operands of a flattened chain match it.
        keyword: Name of a keyword argument whose list of architectures is the gate.
        operand: The operand to add where none can be derived (``with:``).
        shut: For ``close``: the condition's value that leaves an architecture out; None to
            let the engine tell from what the condition guards.
        count: How many places must match, exactly; None, with ``expect: native`` only: at least one.
        unproved: Why the edit may stand without a proof; empty if it needs one.
    """

    where: str
    action: Literal["open", "close"]
    within: str | None = None
    condition: str | None = None
    keyword: str | None = None
    operand: str | None = None
    shut: bool | None = None
    count: int | None = 1
    unproved: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replace:
    """Replace one expression by another, matched by structure, not by white space."""

    where: str
    within: str | None = None
    expression: str
    by: str
    count: int = 1
    unproved: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    """``from module import name`` at the top of a Python module, once."""

    where: str
    module: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Insert:
    """Insert Python statements before or after the statement that binds a name.

    Args:
        anchor: The name that the neighbouring statement binds (an assignment, def, class or
            import), or the neighbouring statement's own source, matched by structure.
        side: On which side of it.
        code: The statements, indented from column 0.
    """

    where: str
    within: str | None = None
    anchor: str
    side: Literal["before", "after"]
    code: str
    unproved: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """Replace anchored text, byte for byte, in a file of any kind."""

    where: str
    find: str
    replace: str
    count: int = 1
    unproved: str


Edit: TypeAlias = "GateEdit | Replace | Import | Insert | Text"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSpec:
    """The edits of one file.

    Args:
        where: Its place in its set, such as ``targets[0].files[1]``.
        path: Relative to where the distribution is imported from.
    """

    where: str
    path: str
    edits: tuple[Edit, ...]


Amount: TypeAlias = Literal["none", "some", "as-like"]
"""How often something stands in what a compiler made: never, at least once, or as often as for
the set's ``like`` architecture in the same state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What a compiler is to make of a unit for the architectures that a set names.

    Args:
        where: Its place in its set.
        instruction: The PTX opcode that is counted, such as ``griddepcontrol``, with whatever
            modifiers; None to count the kernels whose body is a bare return.
        before: How often without the set; None if that does not matter.
        after: How often with it.
    """

    where: str
    instruction: str | None = None
    before: Amount | None = None
    after: Amount | None = None

    @property
    def subject(self) -> str:
        """What is counted, in words."""
        return f"{self.instruction} instructions" if self.instruction else "empty kernels"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitSpec:
    """A translation unit that is made of the files of a set.

    Args:
        where: Its place in its set.
        path: From where the distribution is imported, like a file's.
    """

    where: str
    path: str
    expect: tuple[Expectation, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetSpec:
    """What to do to one distribution in a range of versions.

    Args:
        versions: The range; what it says of pre-releases does not count, they are always in.
        expect: ``native`` where the release should already admit the architectures: its
            gates are checked, and nothing is edited.
        optional: Whether the set applies without this distribution.
        jit: Cache kind (``flashinfer``) to the modules that derive from the files.
        note: What a person should know about these releases, such as why a file stays as it is.
        units: What ``verify --compile`` compiles, and what is to come of it. They change nothing
            that is applied.
    """

    distribution: str
    versions: SpecifierSet
    files: tuple[FileSpec, ...]
    expect: Literal["edits", "native"] = "edits"
    optional: bool = False
    jit: Mapping[str, tuple[str, ...]]
    note: str = ""
    units: tuple[UnitSpec, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Advisory:
    """What is known of the outcome.

    Args:
        when: Distribution to the versions it is about; empty for all.
    """

    severity: Literal["info", "warning", "danger"]
    text: str
    source: str
    when: Mapping[str, SpecifierSet]

    def applies(self, versions: Mapping[str, str]) -> bool:
        """Whether it is about these installed versions (canonical names)."""
        return all(
            name in versions and specifier.contains(versions[name], prereleases=True)
            for name, specifier in self.when.items()
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirements:
    """What each device that the set is for must be able to do, beside its architecture.

    Args:
        pdl: A programmatic dependent launch keeps its order.
        cluster: Blocks in a thread block cluster.
        shared_memory: Bytes of shared memory that a block can opt in to.
        multicast: The device can be part of a multicast object.
        peer_access: Each of these devices reaches the memory of all others.
    """

    pdl: Literal["ordered"] | None = None
    cluster: int | None = None
    shared_memory: int | None = None
    multicast: Literal[True] | None = None
    peer_access: Literal["all"] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchSet:
    """A named description of gates to open or close.

    Args:
        archs: The architectures to admit (``open``) or to exclude (``close``).
        like: The architecture whose verdicts the admitted ones are to share.
        predicates: Dotted name of a predicate whose meaning cannot be read from the package,
            to the architectures for which it holds.
        requires: What the devices are asked at ``apply``, beside their architecture.
        source: Where it was read from, for messages.
        digest: SHA-256 of the file.
    """

    name: str
    summary: str
    why: str
    action: Literal["open", "close"]
    archs: frozenset[Arch]
    like: Arch | None
    advisories: tuple[Advisory, ...]
    predicates: Mapping[str, frozenset[Arch]]
    targets: tuple[TargetSpec, ...]
    requires: Requirements
    source: str
    digest: str

    @property
    def goal(self) -> Goal:
        """What every gate edit of the set is to bring about."""
        return Goal(action=self.action, archs=self.archs, like=self.like)

    def recipe(self, file: FileSpec) -> str:
        """SHA-256 of all that decides what the set makes of a file's bytes.

        It is the same after the set's other words were edited, or its blocks moved.
        """
        edits = [
            [type(edit).__name__, {k: v for k, v in asdict(edit).items() if k != "where"}]
            for edit in file.edits
        ]
        predicates = {name: sorted(map(str, archs)) for name, archs in self.predicates.items()}
        goal = [self.action, sorted(map(str, self.archs)), str(self.like)]
        text = json.dumps([goal, predicates, file.path, edits], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()
