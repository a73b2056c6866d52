"""Levels of x86-64 processors, told from what the instruction CPUID says."""

import pytest

from sklboost.engine.backend import levels_of

pytestmark = pytest.mark.interpreted

# Registers eax, ebx, ecx, edx by leaf; -1 is XGETBV.
HASWELL = {
    0: (13, 0, 0, 0),
    1: (0x306C3, 0, 0x7FFAFBFF, 0xBFEBFBFF),
    7: (0, 0x27AB, 0, 0),
    0x80000000: (0x80000008, 0, 0, 0),
    0x80000001: (0, 0, 0x21, 0x2C100800),
    -1: (0x7, 0, 0, 0),
}
SKYLAKE_SERVER = HASWELL | {
    1: (0x50654, 0, 0x7FFEFBFF, 0xBFEBFBFF),
    7: (0, 0xD39FFFFB, 0, 0),
    0x80000001: (0, 0, 0x121, 0x2C100800),
    -1: (0xE7, 0, 0, 0),
}
NEHALEM = HASWELL | {
    0: (11, 0, 0, 0),
    1: (0x106A5, 0, 0x009CE3BD, 0xBFEBFBFF),
    0x80000001: (0, 0, 0x1, 0x28100800),
}
CORE_2 = NEHALEM | {1: (0x6FB, 0, 0x0000E3BD, 0xBFEBFBFF)}
V2, V3, V4 = "x86-64-v2", "x86-64-v3", "x86-64-v4"


def levels(leaves):
    asked = []

    def ask(leaf, subleaf):
        asked.append(leaf)
        return leaves[leaf]

    found = levels_of(ask)
    if -1 in asked:  # an instruction that not all processors have
        assert leaves[1][2] >> 27 & 1
    return found


@pytest.mark.parametrize(
    ("leaves", "expected"),
    [(CORE_2, []), (NEHALEM, [V2]), (HASWELL, [V2, V3]), (SKYLAKE_SERVER, [V2, V3, V4])],
)
def test_levels_of_known_processors(leaves, expected):
    assert levels(leaves) == expected


def test_registers_that_the_system_does_not_keep_are_not_used():
    assert levels(SKYLAKE_SERVER | {-1: (0x7, 0, 0, 0)}) == [V2, V3]
    assert levels(SKYLAKE_SERVER | {-1: (0x3, 0, 0, 0)}) == [V2]


def test_leaves_that_a_processor_does_not_have_are_not_read():
    assert levels(HASWELL | {0: (6, 0, 0, 0)}) == [V2]
    assert levels(HASWELL | {0x80000000: (0x80000000, 0, 0, 0)}) == []


@pytest.mark.parametrize(("register", "bit"), [(2, 12), (2, 22), (2, 28), (2, 29)])
def test_one_feature_less_is_a_level_less(register, bit):
    leaf = list(HASWELL[1])
    leaf[register] &= ~(1 << bit)
    assert levels(HASWELL | {1: tuple(leaf)}) == [V2]
