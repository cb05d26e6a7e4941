"""A set that requires more of a device than its architecture: when it is applied, when refused."""

from __future__ import annotations

from pathlib import Path

import pytest

import fake_cupy
import gatepatch
from gatepatch import cli
from gatepatch.errors import ProbeError
from trees import make_distribution, make_environment, site_of

KERNEL = "#if __CUDA_ARCH__ == 1000\nint open;\n#endif\n"
SET = """\
schema: 1
name: toy
summary: Open a toy's gate
why: To see what is required.
admit: [sm_120]
like: sm_100
requires: {requires}
targets:
  - distribution: toy
    versions: ">=1"
    files:
      - path: toy/kernel.cuh
        edits:
          - open: {{condition: "__CUDA_ARCH__ == 1000"}}
"""
ALL = "{pdl: ordered, cluster: 8, shared-memory: 101376, multicast: true, peer-access: all}"


class Server:
    """An environment with a toy, and a set for it."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        fake_cupy.install(tmp_path / "site")
        monkeypatch.syspath_prepend(tmp_path / "site")
        self.prefix = make_environment(tmp_path)
        make_distribution(site_of(self.prefix), "toy", "1.0", {"toy/kernel.cuh": KERNEL})
        self.patches = tmp_path / "patches"
        self.patches.mkdir()
        self._monkeypatch = monkeypatch

    def become(self, requires: str, toy: str = "", devices: int = 1, major: int = 12) -> None:
        """Have a set that requires this, and toy devices that do these things."""
        (self.patches / "toy.yaml").write_text(SET.format(requires=requires))
        for name, value in (("TOY", toy), ("TOY_DEVICES", devices), ("TOY_MAJOR", major)):
            self._monkeypatch.setenv(name, str(value))

    @property
    def words(self) -> list[str]:
        """The options that name it."""
        return ["toy", "--prefix", str(self.prefix), "--patches", str(self.patches)]

    def refusal(self) -> str:
        """Why the set is not applied; nothing has changed."""
        with pytest.raises(ProbeError) as error:
            gatepatch.apply("toy", prefix=self.prefix, patches=[self.patches])
        assert (site_of(self.prefix) / "toy/kernel.cuh").read_text() == KERNEL
        return str(error.value)


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Server:
    return Server(tmp_path, monkeypatch)


@pytest.mark.parametrize("devices", [1, 2])
def test_devices_that_can_do_all(server: Server, devices: int) -> None:
    server.become(ALL, "multicast", devices)
    result = gatepatch.apply("toy", prefix=server.prefix, patches=[server.patches])
    assert (result.outcome, result.warnings) == ("applied", ())


HINT = "  nothing was changed; to apply it without asking a device: gatepatch apply toy --assume sm_120"
REFUSED = {
    "pdl": (
        "{pdl: ordered}",
        "broken",
        (
            "toy requires PDL launches that keep their order (pdl: ordered), and device 0, NVIDIA "
            "Toy, answers pdl: broken: 200 of 200 launches read too early"
        ),
    ),
    "cluster": (
        "{cluster: 16}",
        "",
        (
            "toy requires clusters of 16 blocks (cluster: 16), and device 0, NVIDIA Toy, answers "
            "cluster: up to 8 blocks"
        ),
    ),
    "shared memory": (
        "{shared-memory: 101377}",
        "",
        (
            "toy requires 101377 bytes of shared memory a block (shared-memory: 101377), and "
            "device 0, NVIDIA Toy, answers shared-memory: 49152 bytes a block, 101376 with opt-in"
        ),
    ),
    "multicast": (
        "{multicast: true}",
        "",
        (
            "toy requires multicast (multicast: true), and device 0, NVIDIA Toy, answers "
            "multicast: no"
        ),
    ),
    "no answer": (
        "{pdl: ordered}",
        "no-nvrtc",
        (
            "toy requires PDL launches that keep their order (pdl: ordered), and device 0, NVIDIA "
            "Toy, answers pdl: failed: libnvrtc.so.13: cannot open shared object file"
        ),
    ),
}


@pytest.mark.parametrize(("requires", "toy", "words"), REFUSED.values(), ids=REFUSED)
def test_a_device_that_cannot(server: Server, requires: str, toy: str, words: str) -> None:
    server.become(requires, toy)
    assert server.refusal() == f"{words}\n{HINT}"


def test_each_pair_and_all_that_is_missing_is_told_at_once(server: Server) -> None:
    server.become("{peer-access: all, multicast: true}", "no-peers", devices=2)
    told = [line for line in server.refusal().splitlines() if line != HINT]
    assert told == [
        f"toy requires {what}, and device {device}, NVIDIA Toy, answers {answer}"
        for device, peer in ((0, 1), (1, 0))
        for what, answer in (
            ("multicast (multicast: true)", "multicast: no"),
            (
                "peer access between all its devices (peer-access: all)",
                f"peer-access to {peer}: no",
            ),
        )
    ]


def test_only_what_is_required_is_asked(server: Server) -> None:
    server.become("{shared-memory: 49152}", "hang-pdl abort-pdl broken no-clusters")
    result = gatepatch.apply("toy", prefix=server.prefix, patches=[server.patches])
    assert result.outcome == "applied"


def test_another_architecture_is_refused_before_anything_is_asked(server: Server) -> None:
    server.become(ALL, "no-nvrtc", major=9)
    assert server.refusal().startswith(
        "toy is for SM 12.0, and this machine has NVIDIA Toy (SM 9.0)"
    )


def test_an_assumption_answers_none_of_it(server: Server) -> None:
    server.become("{pdl: ordered, cluster: 8}", "broken")
    result = gatepatch.apply("toy", prefix=server.prefix, patches=[server.patches], assume="sm_120")
    assert result.outcome == "applied"
    assert result.warnings == (
        (
            "--assume cannot answer this, and no device was asked: the set requires PDL launches "
            "that keep their order (pdl: ordered)"
        ),
        (
            "--assume cannot answer this, and no device was asked: the set requires clusters of 8 "
            "blocks (cluster: 8)"
        ),
    )


def test_plan_and_show_say_what_will_be_asked(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    server.become("{peer-access: all, cluster: 8}", "no-peers")
    assert cli.main(["plan", *server.words]) == 0
    out = capsys.readouterr().out
    assert "note: apply will ask each device for clusters of 8 blocks (cluster: 8)\n" in out
    assert cli.main(["show", "toy", "--patches", str(server.patches)]) == 0
    assert (
        "  requires: clusters of 8 blocks (cluster: 8); peer access between all its devices "
        "(peer-access: all)\n"
    ) in capsys.readouterr().out
