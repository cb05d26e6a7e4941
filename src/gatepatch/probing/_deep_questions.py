"""The deep probe's questions, each asked of one device or of a pair. Runs in the child."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from gatepatch.probing import _deep_driver as driver

LAUNCHES = 200
"""Pairs of launches that the order is looked at in."""
CYCLES = 200_000
"""How late the first grid writes: 0.1 ms at 2 GHz, many times what a launch takes."""
BLOCKS = 32
"""Few enough for both grids to be on the device at once."""
THREADS = 128
CLUSTERS = range(2, 17)
"""Up to 8 is portable; 16 is the most that any architecture knows."""
PEER_BYTES = 4 << 20

_SOURCE = Path(__file__).with_name("deep_kernels.cu")


class Asker:
    """Asks one device.

    Args:
        cupy: The module.
        index: Of the device, as CUDA counts.
    """

    def __init__(self, cupy: Any, index: int):
        self._runtime = cupy.cuda.runtime
        self._runtime.setDevice(index)
        self._index = index
        self._driver = driver.Driver()
        self._module = cupy.RawModule(code=_SOURCE.read_text())
        properties = self._runtime.getDeviceProperties(index)
        self._capability = (properties["major"], properties["minor"])
        self._kernels: list[Any] = []  # a module is unloaded with the last kernel of it
        self._memory: list[int] = []

    def close(self) -> None:
        """Free the memory that the question took."""
        for pointer in self._memory:
            self._runtime.free(pointer)

    def pdl(self) -> dict[str, Any]:
        """Whether a grid that may start early sees, after its wait, what the one before wrote."""
        if self._capability < (9, 0):
            return {"order": "unsupported", "launches": 0, "wrong": 0, "early": 0}
        wrong = self._out_of_order(wait=True)
        early = self._out_of_order(wait=False)
        order = "broken" if wrong else "ordered"
        return {"order": order, "launches": LAUNCHES, "wrong": wrong, "early": early}

    def _out_of_order(self, *, wait: bool) -> int:
        """In how many of the launches the second grid has read anything but what the first wrote."""
        first, second = self._function("write_late"), self._function("read_after")
        count = BLOCKS * THREADS
        data, seen = self._zeros(4 * count), self._zeros(4 * count * LAUNCHES)
        # The default stream would wait for others; this one waits for nothing but itself.
        stream = self._runtime.streamCreateWithFlags(self._runtime.streamNonBlocking)
        for i in range(LAUNCHES):
            late = (ctypes.c_void_p(data), ctypes.c_uint(i + 1), ctypes.c_longlong(CYCLES))
            self._driver.launch(first, BLOCKS, THREADS, late, stream=stream)
            read = (ctypes.c_void_p(data), ctypes.c_void_p(seen + 4 * count * i))
            self._driver.launch(
                second,
                BLOCKS,
                THREADS,
                (*read, ctypes.c_int(wait)),
                stream=stream,
                attributes=[driver.PDL],
            )
        self._runtime.deviceSynchronize()
        words = self._read(seen, 4 * count * LAUNCHES).cast("I")
        found = (words[count * i : count * (i + 1)].tolist() for i in range(LAUNCHES))
        return sum(row != [i + 1] * count for i, row in enumerate(found))

    def cluster(self) -> dict[str, Any]:
        """The largest cluster that is launched and whose blocks read each other's memory."""
        if self._capability < (9, 0) or not self._driver.attribute(
            driver.CLUSTER_LAUNCH, self._index
        ):
            return {"largest": 1, "said": 1, "sizes": [1]}
        function = self._function("ask_neighbour")
        self._driver.set_attribute(function, driver.NON_PORTABLE_CLUSTER, 1)
        said = self._driver.largest_cluster(function, 16)
        sizes = [1, *(size for size in CLUSTERS if self._clusters(function, size))]
        return {"largest": sizes[-1], "said": said, "sizes": sizes}

    def _clusters(self, function: int, size: int) -> bool:
        seen = self._zeros(4 * size)
        try:
            self._driver.launch(
                function, size, 1, [ctypes.c_void_p(seen)], attributes=[driver.cluster(size)]
            )
        except driver.DriverError:
            return False  # a size that the device does not have
        self._runtime.deviceSynchronize()
        wanted = [1000 * size + (rank + 1) % size for rank in range(size)]
        if self._read(seen, 4 * size).cast("I").tolist() != wanted:
            raise RuntimeError(f"blocks in a cluster of {size} read the wrong words")
        return True

    def shared_memory(self) -> dict[str, Any]:
        """How much shared memory a block has, and how much when it opts in; all of it is used."""
        block = self._driver.attribute(driver.MAX_SHARED, self._index)
        opt_in = self._driver.attribute(driver.MAX_SHARED_OPTIN, self._index)
        function = self._function("fill_shared")
        for size in dict.fromkeys((block, opt_in)):
            self._driver.set_attribute(function, driver.DYNAMIC_SHARED, size)
            right = self._zeros(4)
            arguments = (ctypes.c_void_p(right), ctypes.c_uint(size // 4))
            self._driver.launch(function, 1, THREADS, arguments, shared=size)
            self._runtime.deviceSynchronize()
            (found,) = self._read(right, 4).cast("I").tolist()
            if found != size // 4:
                wrong = size // 4 - found
                raise RuntimeError(f"{wrong} of {size // 4} words of shared memory came back wrong")
        return {"block": block, "opt_in": opt_in}

    def peer_access(self, peer: int) -> dict[str, Any]:
        """Whether it can reach the peer's memory, and whether what comes over is right."""
        pattern = bytes((i * 7 + i // 251 + peer) % 256 for i in range(1021))
        pattern = (pattern * (PEER_BYTES // len(pattern) + 1))[:PEER_BYTES]
        self._runtime.setDevice(peer)
        there = self._zeros(PEER_BYTES)
        self._write(there, pattern)
        self._runtime.setDevice(self._index)
        here = self._zeros(PEER_BYTES)
        self._runtime.memcpyPeer(here, self._index, there, peer, PEER_BYTES)
        self._runtime.deviceSynchronize()
        copied = bytes(self._read(here, PEER_BYTES)) == pattern
        if not self._runtime.deviceCanAccessPeer(self._index, peer):
            return {"access": False, "copied": copied, "read": None}
        self._runtime.deviceEnablePeerAccess(peer)
        here = self._zeros(PEER_BYTES)
        words = PEER_BYTES // 4
        arguments = (ctypes.c_void_p(there), ctypes.c_void_p(here), ctypes.c_uint(words))
        self._driver.launch(self._function("copy"), words // THREADS, THREADS, arguments)
        self._runtime.deviceSynchronize()
        return {
            "access": True,
            "copied": copied,
            "read": bytes(self._read(here, PEER_BYTES)) == pattern,
        }

    def multicast(self) -> dict[str, Any]:
        """Whether the driver says that the device can; no multicast object is made."""
        if not self._driver.attribute(driver.MULTICAST_SUPPORTED, self._index):
            return {"supported": False, "granularity": None, "detail": ""}
        try:
            granularity = self._driver.multicast_granularity(self._runtime.getDeviceCount())
        except driver.DriverError as error:
            # SGLang turns the fusion off where this call fails, whatever the attribute says.
            return {"supported": False, "granularity": None, "detail": str(error)}
        return {"supported": True, "granularity": granularity, "detail": ""}

    def _function(self, name: str) -> int:
        kernel = self._module.get_function(name)
        self._kernels.append(kernel)
        return int(kernel.kernel.ptr)

    def _zeros(self, size: int) -> int:
        """Memory on the current device, all zeros."""
        pointer: int = self._runtime.malloc(size)
        self._memory.append(pointer)
        self._runtime.memset(pointer, 0, size)
        self._runtime.deviceSynchronize()
        return pointer

    def _read(self, pointer: int, size: int) -> memoryview:
        buffer = (ctypes.c_char * size)()
        kind = self._runtime.memcpyDeviceToHost
        self._runtime.memcpy(ctypes.addressof(buffer), pointer, size, kind)
        return memoryview(buffer).cast("B")

    def _write(self, pointer: int, data: bytes) -> None:
        buffer = ctypes.create_string_buffer(data, len(data))
        kind = self._runtime.memcpyHostToDevice
        self._runtime.memcpy(pointer, ctypes.addressof(buffer), len(data), kind)
        self._runtime.deviceSynchronize()


QUESTIONS: Mapping[str, Callable[..., dict[str, Any]]] = {
    "pdl": Asker.pdl,
    "cluster": Asker.cluster,
    "shared-memory": Asker.shared_memory,
    "peer-access": Asker.peer_access,
    "multicast": Asker.multicast,
}


def ask(cupy: Any, question: str, index: int, peer: int | None) -> dict[str, Any]:
    """Ask one question; the answer's fields.

    Args:
        question: One of ``QUESTIONS``.
        index: Of the device, as CUDA counts.
        peer: The other device, where the question is about a pair.
    """
    asker = Asker(cupy, index)
    answer = QUESTIONS[question](asker, *([] if peer is None else [peer]))
    asker.close()
    return answer
