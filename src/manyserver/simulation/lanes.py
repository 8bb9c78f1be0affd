"""Vectors of numbers, one for each of `LANES` replications, as values in compiled functions.

:func:`load` makes a vector of a row of an array, :func:`store` puts it back, and in between the
operators of Python apply to vectors of the same kind, or to a vector and a plain number.
Comparisons give vectors of truth values, for which ``&``, ``|`` and ``~`` are defined. LLVM turns
each operation into as few instructions as the processor has for it; nothing hangs on whether a
compiler sees that a loop can be vectorised.
"""

import operator
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, models, register_model

__all__ = [
    "LANES",
    "any_of",
    "at",
    "bounded",
    "chosen",
    "count",
    "everywhere",
    "floats",
    "load",
    "make_vectors",
    "store",
    "unit",
    "whole",
]

LANES = 16
"""Numbers in a vector: four bytes each fill the longest registers that there are."""


LINE = 64
"""Bytes of a line of the cache."""


def make_vectors(shape: tuple[int, ...], dtype: type[np.generic]) -> np.ndarray:
    """Make an array of zeros, shape (..., lane), no vector of which lies across lines."""
    size = int(np.prod(shape)) * LANES * np.dtype(dtype).itemsize
    room = np.zeros(size + LINE, dtype=np.uint8)
    first = -room.ctypes.data % LINE
    return room[first : first + size].view(dtype).reshape(*shape, LANES)


class Lanes(types.Type):  # type: ignore[misc]
    """A vector of numbers, or of truth values."""

    def __init__(self, dtype: types.Type):
        self.dtype = dtype
        super().__init__(name=f"lanes({dtype})")


WORDS, NUMBERS, FLOATS, TRUTHS = map(Lanes, (types.uint64, types.int32, types.float64, types.bool_))
_ELEMENTS = {WORDS: ir.IntType(64), NUMBERS: ir.IntType(32), FLOATS: ir.DoubleType()}
_VECTORS = {kind: ir.VectorType(element, LANES) for kind, element in _ELEMENTS.items()}
_VECTORS[TRUTHS] = ir.VectorType(ir.IntType(1), LANES)


@register_model(Lanes)
class _Model(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Lanes):
        super().__init__(manager, kind, _VECTORS[kind])


def _repeated(builder: Any, value: Any) -> Any:
    """Return a vector with the same number in all lanes."""
    vector = ir.VectorType(value.type, LANES)
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), None)
    empty = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(empty, value, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(first, empty, zeros)


def _define(name: str, kinds: tuple[Lanes, ...], emit: Any, result: Lanes | None = None) -> None:
    """Define an operator on vectors of the same kind; one of two may be a plain number."""

    class Operator(AbstractTemplate):  # type: ignore[misc]
        def generic(self, args: Any, kws: Any) -> Any:
            found = {arg for arg in args if isinstance(arg, Lanes)}
            others = (arg for arg in args if not isinstance(arg, Lanes))
            if len(found) != 1 or not all(isinstance(arg, types.Number) for arg in others):
                return None
            kind = found.pop()
            return signature(result or kind, *args) if kind in kinds else None

    def lowered(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        kind = next(arg for arg in sig.args if isinstance(arg, Lanes))
        vectors = [
            value
            if arg == kind
            else _repeated(builder, context.cast(builder, value, arg, kind.dtype))
            for arg, value in zip(sig.args, args, strict=True)
        ]
        return emit(builder, kind, *vectors)

    function = getattr(operator, name)
    infer_global(function)(Operator)
    for signs in ((Lanes, Lanes), (Lanes, types.Number), (types.Number, Lanes), (Lanes,)):
        lower_builtin(function, *signs)(lowered)


def _arithmetic(instruction: str) -> Any:
    def emit(builder: Any, kind: Lanes, *args: Any) -> Any:
        return getattr(builder, f"f{instruction}" if kind == FLOATS else instruction)(*args)

    return emit


def _comparison(symbol: str) -> Any:
    def emit(builder: Any, kind: Lanes, *args: Any) -> Any:
        if kind == FLOATS:
            return builder.fcmp_ordered(symbol, *args)
        return builder.icmp_signed(symbol, *args)

    return emit


def _shifted(builder: Any, kind: Lanes, *args: Any) -> Any:
    """Shift to the right; the sign of signed numbers fills the bits."""
    return builder.lshr(*args) if kind == WORDS else builder.ashr(*args)


for _name in ("add", "sub", "mul"):
    _define(_name, (WORDS, NUMBERS, FLOATS), _arithmetic(_name))
_define("truediv", (FLOATS,), _arithmetic("div"))
for _name in ("and_", "or_", "xor"):
    _define(_name, (WORDS, NUMBERS, TRUTHS), _arithmetic(_name))
    _define(f"i{_name.rstrip('_')}", (WORDS, NUMBERS, TRUTHS), _arithmetic(_name))
_define("invert", (NUMBERS, TRUTHS), _arithmetic("not_"))
_define("lshift", (WORDS,), _arithmetic("shl"))
_define("rshift", (WORDS, NUMBERS), _shifted)
for _name, _symbol in (("gt", ">"), ("ge", ">="), ("lt", "<"), ("eq", "==")):
    _define(_name, (NUMBERS, FLOATS), _comparison(_symbol), TRUTHS)


_KINDS = {kind.dtype: kind for kind in _VECTORS}


def _row(context: Any, builder: Any, array: types.Array, value: Any, row: Any) -> Any:
    """Return a pointer to a vector."""
    data = context.make_array(array)(context, builder, value).data
    first = builder.mul(row, ir.Constant(row.type, LANES))
    vector = _VECTORS[_KINDS[array.dtype]]
    return builder.bitcast(builder.gep(data, [first]), vector.as_pointer())


@intrinsic
def at(typingctx, array, place):  # type: ignore[no-untyped-def]
    """Return an element of an array with one axis; no place is counted from the end."""

    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        data = context.make_array(sig.args[0])(context, builder, args[0]).data
        element = builder.load(builder.gep(data, [args[1]]))
        return context.data_model_manager[sig.return_type].from_data(builder, element)

    return array.dtype(array, types.int64), codegen


@intrinsic
def load(typingctx, array, row):  # type: ignore[no-untyped-def]
    """Return the vector in a row of an array, shape (row, LANES)."""
    kind = _KINDS[array.dtype]

    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        pointer = _row(context, builder, sig.args[0], *args)
        return builder.load(pointer, align=array.dtype.bitwidth // 8)

    return kind(array, types.int64), codegen


@intrinsic
def store(typingctx, array, row, vector):  # type: ignore[no-untyped-def]
    """Put a vector into a row of an array, shape (row, LANES)."""

    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        pointer = _row(context, builder, sig.args[0], *args[:2])
        builder.store(args[2], pointer, align=array.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(array, types.int64, vector), codegen


@intrinsic
def everywhere(typingctx, number):  # type: ignore[no-untyped-def]
    """Return a vector with the same number in all lanes."""
    kind = FLOATS if number == types.float64 else NUMBERS

    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        return _repeated(builder, context.cast(builder, args[0], sig.args[0], kind.dtype))

    return kind(number), codegen


@intrinsic
def chosen(typingctx, truths, one, other):  # type: ignore[no-untyped-def]
    """Return `one` where it is true, and `other` elsewhere."""

    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        return builder.select(*args)

    return one(truths, one, one), codegen


@intrinsic
def count(typingctx, truths):  # type: ignore[no-untyped-def]
    """Return 1 where it is true, and 0 elsewhere."""

    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        return builder.zext(args[0], _VECTORS[NUMBERS])

    return NUMBERS(truths), codegen


@intrinsic
def any_of(typingctx, truths):  # type: ignore[no-untyped-def]
    """Return whether it is true in any lane."""

    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        bits = builder.bitcast(args[0], ir.IntType(LANES))
        return builder.icmp_unsigned("!=", bits, ir.Constant(bits.type, 0))

    return types.bool_(truths), codegen


@intrinsic
def unit(typingctx, words):  # type: ignore[no-untyped-def]
    """Turn words into floats, uniform on the multiples of 2**-52 in [0, 1)."""

    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        vector = _VECTORS[WORDS]
        fraction = builder.lshr(args[0], ir.Constant(vector, [12] * LANES))
        # The bits of 1.0, whose fraction is zero.
        bits = builder.or_(fraction, ir.Constant(vector, [0x3FF << 52] * LANES))
        floats = _VECTORS[FLOATS]
        return builder.fsub(builder.bitcast(bits, floats), ir.Constant(floats, [1.0] * LANES))

    return FLOATS(words), codegen


@intrinsic
def whole(typingctx, floats):  # type: ignore[no-untyped-def]
    """Round floats down to whole numbers, from 0 to 2**31 - 1."""

    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        return builder.fptosi(args[0], _VECTORS[NUMBERS])

    return NUMBERS(floats), codegen


@intrinsic
def floats(typingctx, numbers):  # type: ignore[no-untyped-def]
    """Turn whole numbers into floats."""

    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        return builder.sitofp(args[0], _VECTORS[FLOATS])

    return FLOATS(numbers), codegen


@intrinsic
def bounded(typingctx, words, sizes):  # type: ignore[no-untyped-def]
    """Turn the low halves of words into numbers below `sizes`, a vector or a plain number."""

    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        vector, numbers = _VECTORS[WORDS], _VECTORS[NUMBERS]
        sizes = args[1]
        if not isinstance(sig.args[1], Lanes):
            sizes = _repeated(builder, context.cast(builder, sizes, sig.args[1], types.int32))
        # Factors that are seen to be below 2**32 have a faster product.
        half = builder.zext(builder.trunc(args[0], numbers), vector)
        product = builder.mul(half, builder.zext(sizes, vector))
        high = builder.lshr(product, ir.Constant(vector, [32] * LANES))
        return builder.trunc(high, _VECTORS[NUMBERS])

    return NUMBERS(words, sizes), codegen
