"""A CuPy and a driver without a device: memory is the process's own, kernels are Python.

``install`` writes them as the package ``cupy``. What the toy devices do wrong is told by the
environment variable ``TOY``, words with blanks between them.
"""

from __future__ import annotations

import time
from pathlib import Path

from trees import write_files


def install(site: Path) -> None:
    """Write the package into a folder that is then put on ``sys.path``."""
    write_files(site, {"cupy/__init__.py": _CUPY})


def wait_for(file: Path) -> None:
    """Wait until something is written into a file."""
    deadline = time.monotonic() + 60
    while not file.exists() or not file.read_text():
        assert time.monotonic() < deadline, file
        time.sleep(0.02)


def wait_until_gone(process: int) -> None:
    """Wait until a process has ended; one that nobody has waited for yet counts."""
    deadline = time.monotonic() + 60
    try:
        while Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
            assert time.monotonic() < deadline, process
            time.sleep(0.02)
    except (FileNotFoundError, ProcessLookupError):
        pass


_CUPY = '''
import ctypes, os, time
from types import SimpleNamespace

__version__ = "14.2.0"
TOY = os.environ.get("TOY", "").split()
COUNT = int(os.environ.get("TOY_DEVICES", "1"))
MAJOR = int(os.environ.get("TOY_MAJOR", "12"))
if "cache" in TOY:  # as CuPy 14.2 does, in memory or not
    folder = os.environ.get("CUPY_CACHE_DIR", "~/.cupy/kernel_cache")
    os.makedirs(os.path.expanduser(folder), exist_ok=True)
LARGEST = 16 if "large-clusters" in TOY else 8


class CUDARuntimeError(RuntimeError):
    pass


class State:
    device = 0
    memory = {}
    freed = 0
    reached = set()
    late = None
    shared = 0
    portable = True


def malloc(size):
    buffer = (ctypes.c_char * size)()
    State.memory[ctypes.addressof(buffer)] = buffer
    return ctypes.addressof(buffer)


def free(pointer):
    del State.memory[pointer]


def hang():
    if "pids" in TOY:
        with open(os.environ["PIDS"], "w") as file:
            file.write(str(os.getpid()))
    time.sleep(120)


def memcpy_peer(to, here, start, there, size):
    assert here == State.device != there
    if "hang-peer" in TOY and here == 0:
        hang()
    ctypes.memmove(to, start, size)
    if "wrong-copy" in TOY:
        ctypes.memset(to + size - 1, 0, 1)


def enable(peer):
    assert peer != State.device and (State.device, peer) not in State.reached
    State.reached.add((State.device, peer))


def set_device(index):
    assert 0 <= index < COUNT
    State.device = index


runtime = SimpleNamespace(
    CUDARuntimeError=CUDARuntimeError,
    getDeviceCount=lambda: COUNT,
    driverGetVersion=lambda: 13000,
    runtimeGetVersion=lambda: 12090,
    getDeviceProperties=lambda index: {
        "name": b"NVIDIA Toy", "major": MAJOR, "minor": 0, "uuid": bytes([index]) * 16,
    },
    deviceGetPCIBusId=lambda index: f"0000:0{index}:00.0",
    deviceCanAccessPeer=lambda a, b: int("no-peers" not in TOY),
    deviceEnablePeerAccess=enable,
    deviceSynchronize=lambda: None,
    setDevice=set_device,
    streamNonBlocking=1,
    streamCreateWithFlags=lambda flags: 0xBEEF,
    memcpyDeviceToHost=2,
    memcpyHostToDevice=1,
    malloc=malloc,
    free=free,
    memset=lambda pointer, value, size: ctypes.memset(pointer, value, size),
    memcpy=lambda to, start, size, kind: ctypes.memmove(to, start, size),
    memcpyPeer=memcpy_peer,
)
cuda = SimpleNamespace(runtime=runtime)


def words(pointer, count):
    return (ctypes.c_uint * count).from_address(pointer)


def arguments(pointers, *types):
    return [ctypes.cast(p, ctypes.POINTER(t)).contents.value for p, t in zip(pointers, types)]


POINTER, UINT, INT = ctypes.c_void_p, ctypes.c_uint, ctypes.c_int


def write_late(launch, pointers):
    data, value, cycles = arguments(pointers, POINTER, UINT, ctypes.c_longlong)
    assert cycles > 0 and launch.stream == 0xBEEF and not launch.attributes
    State.late = (data, value, launch.count)


def finish():
    data, value, count = State.late
    words(data, count)[:] = [value] * count


def read_after(launch, pointers):
    data, seen, wait = arguments(pointers, POINTER, POINTER, INT)
    assert launch.stream == 0xBEEF
    assert launch.attributes == {6: (1,)}, launch.attributes
    if wait and "hang-pdl" in TOY:
        hang()
    if wait and "abort-pdl" in TOY:
        os.abort()
    early = "broken" in TOY if wait else "late-start" not in TOY
    if not early:
        finish()
    words(seen, launch.count)[:] = words(data, launch.count)[:]
    finish()


def ask_neighbour(launch, pointers):
    (seen,) = arguments(pointers, POINTER)
    (size, y, z) = launch.attributes[4]
    assert (y, z) == (1, 1) and launch.blocks == size
    if size > LARGEST or (size > 8 and State.portable):
        return 912
    base = 0 if "wrong-cluster" in TOY else 1000 * size
    words(seen, size)[:] = [base + (rank + 1) % size for rank in range(size)]


def fill_shared(launch, pointers):
    right, count = arguments(pointers, POINTER, UINT)
    if launch.shared > State.shared:
        return 1
    assert launch.shared == 4 * count
    words(right, 1)[0] = count - ("wrong-shared" in TOY)


def copy(launch, pointers):
    start, to, count = arguments(pointers, POINTER, POINTER, UINT)
    assert launch.blocks * launch.threads == count
    ctypes.memmove(to, start, 4 * count)
    if "wrong-read" in TOY:
        words(to, count)[0] ^= 1


KERNELS = [write_late, read_after, ask_neighbour, fill_shared, copy]
NAMES = [kernel.__name__ for kernel in KERNELS]


class RawModule:
    def __init__(self, *, code):
        self.code = code
        if "slow" in TOY:
            time.sleep(0.6)

    def get_function(self, name):
        if "no-nvrtc" in TOY:
            try:
                raise OSError("libnvrtc.so.13: cannot open shared object file")
            except OSError as error:
                raise RuntimeError("a page of advice\\n\\nover many lines") from error
        if "no-compile" in TOY:
            raise RuntimeError("x.cu(1): warning: odd\\nx.cu(2): error: no such thing\\n1 error")
        assert f"void {name}(" in self.code
        return SimpleNamespace(kernel=SimpleNamespace(ptr=NAMES.index(name) + 1))


class Library:
    """libcuda.so.1; the structures are looked at through their own addresses."""

    def __init__(self, name):
        assert name == "libcuda.so.1"
        if "no-driver" in TOY:
            raise OSError(f"{name}: cannot open shared object file")
        if "old-driver" not in TOY:
            self.cuLaunchKernelEx = self._launch

    def cuDeviceGet(self, device, index):
        device._obj.value = 100 + index
        return 0

    def cuDeviceGetAttribute(self, value, number, device):
        assert device.value == 100 + State.device
        told = {8: 49152, 97: 101376, 120: "no-clusters" not in TOY, 132: "multicast" in TOY}
        value._obj.value = int(told[number])
        return 0

    def cuFuncSetAttribute(self, function, number, value):
        if number == 8:
            assert NAMES[function.value - 1] == "fill_shared"
            State.shared = value
        else:
            assert (number, value) == (14, 1)
            State.portable = False
        return 0

    def cuOccupancyMaxPotentialClusterSize(self, size, function, config):
        assert NAMES[function.value - 1] == "ask_neighbour"
        size._obj.value = 16 if "says-16" in TOY else LARGEST
        return 0

    def cuMulticastGetGranularity(self, size, wanted, which):
        if "no-granularity" in TOY:
            return 801
        assert wanted._obj.devices == COUNT
        size._obj.value = 2 << 20
        return 0

    def cuGetErrorName(self, code, text):
        names = {1: b"CUDA_ERROR_INVALID_VALUE", 801: b"CUDA_ERROR_NOT_SUPPORTED", 912: b"CUDA_ERROR_INVALID_CLUSTER_SIZE"}
        text._obj.value = names.get(code)
        return 0 if code in names else 1

    def _launch(self, config, function, pointers, extra):
        assert extra is None
        c = config._obj
        launch = SimpleNamespace(
            blocks=c.grid[0],
            threads=c.block[0],
            count=c.grid[0] * c.block[0],
            shared=c.shared,
            stream=c.stream or 0,
            attributes={},
        )
        assert list(c.grid)[1:] == list(c.block)[1:] == [1, 1]
        for i in range(c.count):
            a = c.attributes[i]
            launch.attributes[a.id] = tuple(a.value[: 3 if a.id == 4 else 1])
        if "error-launch" in TOY:
            return 4242
        return KERNELS[function.value - 1](launch, pointers) or 0


_real = ctypes.CDLL
ctypes.CDLL = lambda name=None, *rest, **more: Library(name) if name == "libcuda.so.1" else _real(name, *rest, **more)
'''
