"""Keep every test away from the real home, caches and settings."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

# A busy machine is no failure.
settings.register_profile("gatepatch", deadline=None)
settings.load_profile("gatepatch")

# A shell starts what it puts in the background with SIGINT ignored, nohup with SIGHUP, and what is
# ignored stays so in every child.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

_REAL = (
    "CUDA_VISIBLE_DEVICES",
    "FLASHINFER_WORKSPACE_BASE",
    "PYTHONHOME",
    "PYTHONPATH",
    "PYTHONPYCACHEPREFIX",
    "PYTHONUSERBASE",
    "VIRTUAL_ENV",
)
_REAL_PREFIXES = ("FLASHINFER_", "GATEPATCH_", "GIT_", "SGLANG_", "XDG_")


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home, and no setting of the person who runs the tests."""
    home = tmp_path_factory.mktemp("home")
    for name in list(os.environ):
        if name in _REAL or name.startswith(_REAL_PREFIXES):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    for name, folder in (("CACHE", ".cache"), ("CONFIG", ".config"), ("DATA", ".local/share")):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(home / folder))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(home / ".gitconfig"))
    return home
