"""What the scripts share that check gatepatch on a machine with devices."""

from __future__ import annotations

from collections.abc import Callable, Sequence


def failed(checks: Sequence[Callable[[], str]]) -> int:
    """Run all checks, print PASS or FAIL for each; how many have failed."""
    count = 0
    for check in checks:
        what = (check.__doc__ or check.__name__).strip()
        try:
            print(f"PASS  {what}  [{check()}]", flush=True)
        except Exception as error:
            count += 1
            print(f"FAIL  {what}  [{type(error).__name__}: {error}]", flush=True)
    return count
