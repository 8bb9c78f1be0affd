"""Random numbers for the kernels: xoshiro256++ with its state in local variables.

The generator is Blackman and Vigna's xoshiro256++ (Scrambled linear pseudorandom number
generators, ACM TOMS 47, 2021). NumPy's SeedSequence spreads the seed over its state. Numba turns
a mix of signed and unsigned integers into a float, so everything here is a 64-bit unsigned one.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

from manyserver.machine_code import njit

__all__ = ["kernel", "next_word", "prefetch", "seeded_words", "uniform", "wide_product"]

# Kernels allocate nothing. Without numba's reference counts, a sample of the state takes half the
# time; without the interpreter's lock, replications run side by side.
kernel = partial(njit, nogil=True, _nrt=False)

_12, _17, _19, _23, _41, _45 = (np.uint64(bits) for bits in (12, 17, 19, 23, 41, 45))


def seeded_words(seed: Sequence[int], count: int) -> np.ndarray:
    """Derive 64-bit words from a seed.

    Parameters
    ----------
    seed : sequence of int
        Integers >= 0; different sequences give independent words.
    count : int
        Number of words.

    Returns
    -------
    numpy.ndarray of uint64, shape (count,)
    """
    # SeedSequence ignores zeros at the end; the length tells (1, 0) from (1,).
    return np.random.SeedSequence([len(seed), *seed]).generate_state(count, np.uint64)


@njit(inline="always")
def next_word(s0, s1, s2, s3):  # type: ignore[no-untyped-def]
    """Return the next 64-bit word and the state after it."""
    total = s0 + s3
    word = ((total << _23) | (total >> _41)) + s0
    shifted = s1 << _17
    s2 ^= s0
    s3 ^= s1
    s1 ^= s2
    s0 ^= s3
    s2 ^= shifted
    s3 = (s3 << _45) | (s3 >> _19)
    return word, s0, s1, s2, s3


@njit(inline="always")
def uniform(word):  # type: ignore[no-untyped-def]
    """Turn a word into a float, uniform on the multiples of 2**-52 in [0, 1)."""
    return np.float64(word >> _12) * 2.0**-52


@intrinsic
def wide_product(typingctx, a, b):  # type: ignore[no-untyped-def]
    """Return the high and the low word of the 128-bit product of two words.

    With a uniform word and a bound n, the high word is uniform on 0, ..., n - 1, and the low
    word is nearly uniform again, with log2(n) bits less to give (Lemire, ACM TOMACS 29, 2019).
    """
    signature = types.UniTuple(types.uint64, 2)(types.uint64, types.uint64)

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        word, wide = ir.IntType(64), ir.IntType(128)
        product = builder.mul(builder.zext(args[0], wide), builder.zext(args[1], wide))
        high = builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), word)
        low = builder.trunc(product, word)
        return context.make_tuple(builder, signature.return_type, [high, low])

    return signature, codegen


@intrinsic
def prefetch(typingctx, array, index):  # type: ignore[no-untyped-def]
    """Ask for an element of an array, to have it at hand later."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        view = make_array(signature.args[0])(context, builder, args[0])
        pointer = builder.gep(view.data, [args[1]])
        pointer = builder.bitcast(pointer, cgutils.voidptr_t)
        word = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, word, word, word])
        function = builder.module.declare_intrinsic("llvm.prefetch", [cgutils.voidptr_t], kind)
        # To be written soon, and needed more than once.
        builder.call(function, [pointer, word(1), word(3), word(1)])
        return context.get_dummy_value()

    return types.void(array, index), codegen
