"""A scanner in a process of its own: reads jobs from standard input, writes results.

Started as ``python -m gatepatch.scanning._scanner_child``; each line of its input is a JSON list of
``[distribution, path, file, predicates]``; each is answered by one line.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any

from gatepatch.scanning.one_file import Scanner

_MEMORY = 2 << 30
"""Bytes of address space: a file that takes more is given up, and said to be."""


def _end_with(parent: int) -> None:
    """End this process once the one that started it is gone, killed or not."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def main() -> int:
    """Answer until there is no more input."""
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    warnings.simplefilter("ignore")  # what a scanned file's literals deserve is not of concern
    sys.setrecursionlimit(4000)
    gc.disable()  # syntax trees are many objects, and none of them lies in a cycle
    scanners: dict[str, Scanner] = {}
    for line in sys.stdin:
        answers: list[Any] = []
        for key, path, file, given in json.loads(line):
            if key not in scanners:
                scanners = {key: Scanner(Path(key.partition("\0")[0]))}
            answers.append(scanners[key].scan(path, file, given))
        sys.stdout.write(json.dumps(answers, separators=(",", ":")) + "\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
