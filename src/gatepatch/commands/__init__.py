"""The commands, a module each: its arguments, its one library call, its exit code.

A module has ``arguments(parser)`` and ``run(options, out, err)``. It is imported only when its
command is asked for, so that ``gatepatch --version`` costs what it should.
"""

SUMMARIES = {
    "list": "list the patch sets",
    "show": "say what a patch set is for, and what is known of it",
    "probe": "ask which devices there are, and what they can do",
    "plan": "show what apply would do, with diffs and proofs",
    "apply": "apply a patch set, all of it or nothing",
    "status": "say what is applied, going by the files themselves",
    "verify": "say it again from the bytes on disk, and find what is in the way",
    "revert": "put the originals back, byte for byte",
    "recover": "settle an interrupted change",
    "doctor": "say what is wrong here, and the next command for each thing",
    "trial": "run a benchmark without and with a set, and keep the set only if it pays",
    "scan": "list the gates that leave your architecture out",
    "cache": "list what FlashInfer's JIT has built, or check it",
    "lint": "check patch sets",
    "new": "write a patch set of edits made by hand, or of a diff",
    "pin": "work a set out for released versions, for review",
}
