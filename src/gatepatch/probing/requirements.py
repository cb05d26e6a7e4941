"""Whether devices can do what a set requires of them, beside having the right architecture."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from gatepatch.probing.device_probe import Device
from gatepatch.probing.properties import (
    Answer,
    Cluster,
    Multicast,
    Pdl,
    PeerAccess,
    QuestionName,
    SharedMemory,
    Unanswered,
    title,
)
from gatepatch.spec import Requirements


def wanted(requires: Requirements) -> dict[QuestionName, str]:
    """The questions to ask, each with what it is to say, in words."""
    words: dict[QuestionName, str] = {}
    if requires.pdl is not None:
        words["pdl"] = "PDL launches that keep their order (pdl: ordered)"
    if requires.cluster is not None:
        words["cluster"] = f"clusters of {requires.cluster} blocks (cluster: {requires.cluster})"
    if requires.shared_memory is not None:
        size = requires.shared_memory
        words["shared-memory"] = f"{size} bytes of shared memory a block (shared-memory: {size})"
    if requires.multicast is not None:
        words["multicast"] = "multicast (multicast: true)"
    if requires.peer_access is not None:
        words["peer-access"] = "peer access between all its devices (peer-access: all)"
    return words


def unmet(
    requires: Requirements, answers: Iterable[Answer], devices: Sequence[Device]
) -> Iterator[str]:
    """What each device falls short of, in words that follow the set's name."""
    words = wanted(requires)
    names = {device.index: device.name for device in devices}
    for answer in answers:
        if not _meets(requires, answer):
            who = f"device {answer.device}, {names[answer.device]},"
            yield f"requires {words[answer.question]}, and {who} answers {title(answer)}: {answer.words}"


def _meets(requires: Requirements, answer: Answer) -> bool:
    match answer:
        case Pdl():
            return answer.order == "ordered"
        case Cluster():
            return answer.largest >= (requires.cluster or 0)
        case SharedMemory():
            return answer.opt_in >= (requires.shared_memory or 0)
        case Multicast():
            return answer.supported
        case PeerAccess():
            return answer.works
        case Unanswered():
            return False
