"""What the deep probe asks of a device, and what it answers."""

from __future__ import annotations

from typing import Literal, TypeAlias

from gatepatch.records import dataclass

QuestionName: TypeAlias = Literal["pdl", "cluster", "shared-memory", "peer-access", "multicast"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question to one device.

    Args:
        device: Index, as CUDA counts.
        peer: The other device, where it is about a pair.
    """

    question: QuestionName
    device: int
    peer: int | None = None

    def __str__(self) -> str:
        to = "" if self.peer is None else f" to {self.peer}"
        return f"device {self.device}{to}: {self.question}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pdl:
    """Whether a programmatic dependent launch keeps its order.

    Args:
        order: ``ordered`` if no launch read, after its grid dependency wait, anything but what the
            grid before it wrote; ``unsupported`` where the device knows no such wait (before 9.0).
        launches: How many pairs of grids were launched, each with the wait and without.
        wrong: How many of them read something else, with the wait.
        early: The same without the wait. 0 says that no grid was seen to start early, so that the
            order was not put to the test.
    """

    question: Literal["pdl"] = "pdl"
    device: int
    order: Literal["ordered", "broken", "unsupported"]
    launches: int
    wrong: int
    early: int

    @property
    def words(self) -> str:
        """The answer in words."""
        match self.order:
            case "unsupported":
                return "not supported: there is no grid dependency wait before SM 9.0"
            case "broken":
                return f"broken: {self.wrong} of {self.launches} launches read too early"
            case "ordered":
                kept = f"ordered in {self.launches} launches"
                if self.early:
                    return f"{kept}; without the wait {self.early} read too early"
                return f"{kept}; without the wait too: none was seen to start early"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """The largest thread block cluster.

    Args:
        largest: Blocks in the largest cluster that was launched and whose blocks read each other's
            shared memory; 1 where there are no clusters.
        said: What ``cuOccupancyMaxPotentialClusterSize`` says.
        sizes: All sizes that were launched.
    """

    question: Literal["cluster"] = "cluster"
    device: int
    largest: int
    said: int
    sizes: tuple[int, ...]

    @property
    def words(self) -> str:
        """The answer in words."""
        if self.largest == 1:
            return "none"
        differs = "" if self.said == self.largest else f"; the driver says {self.said}"
        return f"up to {self.largest} blocks{differs}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedMemory:
    """Bytes of shared memory that a block can use: without asking, and when it opts in."""

    question: Literal["shared-memory"] = "shared-memory"
    device: int
    block: int
    opt_in: int

    @property
    def words(self) -> str:
        """The answer in words."""
        return f"{self.block} bytes a block, {self.opt_in} with opt-in"


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerAccess:
    """Whether a device reaches another's memory.

    Args:
        access: Whether the driver says so.
        copied: Whether a copy from there gave the right bytes; without access it goes by the host.
        read: Whether a kernel that read there got the right bytes; None without access.
    """

    question: Literal["peer-access"] = "peer-access"
    device: int
    peer: int
    access: bool
    copied: bool
    read: bool | None

    @property
    def works(self) -> bool:
        """Whether there is access, and all bytes came over right."""
        return self.access and self.copied and self.read is True

    @property
    def words(self) -> str:
        """The answer in words."""
        if not self.access:
            return f"no{'' if self.copied else ', and a copy by the host gave wrong bytes'}"
        if self.works:
            return "yes; a copy and a kernel got the right bytes"
        wrong = [
            what
            for what, right in (("a copy", self.copied), ("a kernel that read there", self.read))
            if not right
        ]
        return f"the driver says yes, and {' and '.join(wrong)} got wrong bytes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Multicast:
    """Whether a device can be part of a multicast object. None is made.

    Args:
        granularity: Bytes that such an object is best aligned to; None where there are none.
        detail: Why not, where the driver first says that there are.
    """

    question: Literal["multicast"] = "multicast"
    device: int
    supported: bool
    granularity: int | None
    detail: str

    @property
    def words(self) -> str:
        """The answer in words."""
        if self.supported:
            return f"yes, in steps of {self.granularity} bytes"
        return f"no: {self.detail}" if self.detail else "no"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unanswered:
    """A question without an answer, which is an answer too.

    Args:
        reason: ``hangs`` if there was nothing within the time limit, and what was asked was ended.
        detail: What was seen.
    """

    question: QuestionName
    device: int
    peer: int | None
    reason: Literal["hangs", "failed"]
    detail: str

    @property
    def words(self) -> str:
        """The answer in words."""
        return f"{self.reason}: {self.detail}"


Answer: TypeAlias = "Pdl | Cluster | SharedMemory | PeerAccess | Multicast | Unanswered"


def title(answer: Answer) -> str:
    """What was asked, and of which peer."""
    peer = answer.peer if isinstance(answer, PeerAccess | Unanswered) else None
    return answer.question if peer is None else f"{answer.question} to {peer}"
