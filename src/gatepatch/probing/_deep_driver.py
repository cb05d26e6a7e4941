"""The driver calls that CuPy does not wrap, for the deep probe's child.

The layouts and numbers are those of ``cuda.h`` (12.0 to 13.0; a test compares them).
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

MAX_SHARED = 8
"""``CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK``"""
MAX_SHARED_OPTIN = 97
CLUSTER_LAUNCH = 120
MULTICAST_SUPPORTED = 132

DYNAMIC_SHARED = 8
"""``CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES``"""
NON_PORTABLE_CLUSTER = 14

CLUSTER_DIMENSION = 4
"""``CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION``"""
PROGRAMMATIC_STREAM_SERIALIZATION = 6

_RECOMMENDED = 1
_POSIX_FILE = 1


class LaunchAttribute(ctypes.Structure):
    """``CUlaunchAttribute``: the value is a union of 64 bytes."""

    _fields_ = (
        ("id", ctypes.c_int),
        ("pad", ctypes.c_char * 4),
        ("value", ctypes.c_uint * 16),
    )


class LaunchConfig(ctypes.Structure):
    """``CUlaunchConfig``."""

    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(LaunchAttribute)),
        ("count", ctypes.c_uint),
    )


class MulticastProperties(ctypes.Structure):
    """``CUmulticastObjectProp``."""

    _fields_ = (
        ("devices", ctypes.c_uint),
        ("size", ctypes.c_size_t),
        ("handles", ctypes.c_ulonglong),
        ("flags", ctypes.c_ulonglong),
    )


class DriverError(Exception):
    """A call of the driver failed."""


def cluster(size: int) -> tuple[int, int, int, int]:
    """The launch attribute that asks for clusters of so many blocks."""
    return CLUSTER_DIMENSION, size, 1, 1


PDL = (PROGRAMMATIC_STREAM_SERIALIZATION, 1)
"""The launch attribute that lets a grid start before the one in front of it has ended."""


class Driver:
    """``libcuda.so.1``, in the context that the CUDA runtime has made current."""

    def __init__(self) -> None:
        self._library: Any = ctypes.CDLL("libcuda.so.1")

    def attribute(self, number: int, index: int) -> int:
        """Ask for a device's attribute."""
        device, value = ctypes.c_int(), ctypes.c_int()
        self._call("cuDeviceGet", ctypes.byref(device), index)
        self._call("cuDeviceGetAttribute", ctypes.byref(value), number, device)
        return value.value

    def set_attribute(self, function: int, number: int, value: int) -> None:
        """Set a function's attribute."""
        self._call("cuFuncSetAttribute", ctypes.c_void_p(function), number, value)

    def largest_cluster(self, function: int, blocks: int) -> int:
        """The largest cluster that the driver says the function can be launched with."""
        size = ctypes.c_int()
        config, _ = _config(blocks, 1, 0, 0, ())
        self._call(
            "cuOccupancyMaxPotentialClusterSize",
            ctypes.byref(size),
            ctypes.c_void_p(function),
            ctypes.byref(config),
        )
        return size.value

    def multicast_granularity(self, devices: int) -> int:
        """Bytes that a multicast object of so many devices is best aligned to; none is made."""
        size = ctypes.c_size_t()
        wanted = MulticastProperties(devices=devices, size=1 << 21, handles=_POSIX_FILE)
        self._call(
            "cuMulticastGetGranularity", ctypes.byref(size), ctypes.byref(wanted), _RECOMMENDED
        )
        return size.value

    def launch(
        self,
        function: int,
        blocks: int,
        threads: int,
        arguments: Sequence[Any],
        *,
        shared: int = 0,
        stream: int = 0,
        attributes: Sequence[tuple[int, ...]] = (),
    ) -> None:
        """Launch a kernel.

        Args:
            function: CuPy's ``RawKernel.kernel.ptr``.
            arguments: ctypes values, of the types that the kernel declares.
            shared: Bytes of dynamic shared memory.
            attributes: The id of each launch attribute, and its value as unsigned ints.
        """
        config, kept = _config(blocks, threads, shared, stream, attributes)
        pointers = (ctypes.c_void_p * len(arguments))(
            *(ctypes.cast(ctypes.byref(value), ctypes.c_void_p) for value in arguments)
        )
        self._call(
            "cuLaunchKernelEx", ctypes.byref(config), ctypes.c_void_p(function), pointers, None
        )
        del kept  # the driver has copied what it needs

    def _call(self, name: str, *arguments: Any) -> None:
        function = getattr(self._library, name, None)
        if function is None:
            raise DriverError(f"the driver has no {name}")
        if code := function(*arguments):
            raise DriverError(f"{name}: {self._name(code)}")

    def _name(self, code: int) -> str:
        text = ctypes.c_char_p()
        if self._library.cuGetErrorName(code, ctypes.byref(text)) or text.value is None:
            return f"error {code}"
        return text.value.decode()


def _config(
    blocks: int, threads: int, shared: int, stream: int, attributes: Sequence[tuple[int, ...]]
) -> tuple[LaunchConfig, Any]:
    """A launch's configuration, and what must live as long as it."""
    array = (LaunchAttribute * max(1, len(attributes)))()
    for slot, (number, *values) in zip(array, attributes, strict=False):
        slot.id = number
        for i, value in enumerate(values):
            slot.value[i] = value
    config = LaunchConfig(
        grid=(blocks, 1, 1),
        block=(threads, 1, 1),
        shared=shared,
        stream=stream or None,
        attributes=array,
        count=len(attributes),
    )
    return config, array
