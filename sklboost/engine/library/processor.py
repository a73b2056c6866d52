"""The levels of processors: what a processor can do, of the steps that compilers go by.

The x86-64 levels are those of the psABI (https://gitlab.com/x86-psABIs/x86-64-ABI, table 3.1).
"""

import ctypes
from collections.abc import Callable, Sequence
from typing import NamedTuple

# Asks a processor, as its instruction CPUID does: (leaf, subleaf) -> registers eax, ebx, ecx, edx.
Ask = Callable[[int, int], Sequence[int]]
# What a library has for that, and the leaf that gives XGETBV's eax instead: which registers the
# operating system keeps.
PROCESSOR, REGISTERS_KEPT = "sklboost_processor", -1
_EAX, _EBX, _ECX, _EDX = range(4)
# In XGETBV's eax: xmm and ymm; opmask and zmm, too.
_YMM, _ZMM = 0x6, 0xE6


class _Bit(NamedTuple):
    """A bit of CPUID."""

    leaf: int
    register: int
    position: int


_LEAF_7, _EXTENDED = 7, 0x80000001
# What each level needs beside the ones before it.
X86_64_LEVELS = {
    "x86-64-v2": {
        "SSE3": _Bit(1, _ECX, 0),
        "SSSE3": _Bit(1, _ECX, 9),
        "CMPXCHG16B": _Bit(1, _ECX, 13),
        "SSE4.1": _Bit(1, _ECX, 19),
        "SSE4.2": _Bit(1, _ECX, 20),
        "POPCNT": _Bit(1, _ECX, 23),
        "LAHF": _Bit(_EXTENDED, _ECX, 0),
    },
    "x86-64-v3": {
        "FMA": _Bit(1, _ECX, 12),
        "MOVBE": _Bit(1, _ECX, 22),
        "OSXSAVE": _Bit(1, _ECX, 27),
        "AVX": _Bit(1, _ECX, 28),
        "F16C": _Bit(1, _ECX, 29),
        "BMI1": _Bit(_LEAF_7, _EBX, 3),
        "AVX2": _Bit(_LEAF_7, _EBX, 5),
        "BMI2": _Bit(_LEAF_7, _EBX, 8),
        "LZCNT": _Bit(_EXTENDED, _ECX, 5),
    },
    "x86-64-v4": {
        "AVX512F": _Bit(_LEAF_7, _EBX, 16),
        "AVX512DQ": _Bit(_LEAF_7, _EBX, 17),
        "AVX512CD": _Bit(_LEAF_7, _EBX, 28),
        "AVX512BW": _Bit(_LEAF_7, _EBX, 30),
        "AVX512VL": _Bit(_LEAF_7, _EBX, 31),
    },
}
# Vector registers that the operating system must keep when it changes threads.
_KEPT = {"x86-64-v3": _YMM, "x86-64-v4": _ZMM}


def asking(library: ctypes.CDLL) -> Ask:
    """Return the way to ask the processor that a library of machine code has."""
    function = library[PROCESSOR]
    function.argtypes = [ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p]
    function.restype = None

    def ask(leaf: int, subleaf: int) -> Sequence[int]:
        registers = (ctypes.c_uint32 * 4)()
        function(leaf, subleaf, ctypes.addressof(registers))
        return list(registers)

    return ask


def levels_of(ask: Ask) -> list[str]:
    """Return the x86-64 levels that a processor has, lowest first."""
    levels: list[str] = []
    for level, features in X86_64_LEVELS.items():
        if not all(_has(ask, bit) for bit in features.values()):
            break
        kept = _KEPT.get(level, 0)
        # OSXSAVE, without which there is no XGETBV, is among the features
        if kept and ask(REGISTERS_KEPT, 0)[_EAX] & kept != kept:
            break
        levels.append(level)
    return levels


def _has(ask: Ask, bit: _Bit) -> bool:
    base = bit.leaf & 0x80000000
    if ask(base, 0)[_EAX] < bit.leaf:  # the highest leaf that there is
        return False
    return bool(ask(bit.leaf, 0)[bit.register] >> bit.position & 1)
