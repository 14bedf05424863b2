"""A hint to the processor that a row of a table will be needed soon, for compiled loops.

Fetching takes far longer than the arithmetic on what was fetched, and loops that go down a tree know
the next rows long before they get to them. Counts of boxes take up to half the time with it.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LINE = 64  # bytes that are fetched at once, on the processors of today
LINES = 4  # from the row's beginning on: two regions of a map, or four parts
READ, KEEP, DATA = 0, 3, 1  # what llvm.prefetch calls rw, locality and cache type


@intrinsic  # type: ignore[untyped-decorator]
def prefetch(typing_context: Any, table: Any, row: Any) -> Any:  # noqa: ARG001 - numba's own form
    """Of a contiguous table, the lines from a row on. Rows beyond it do no harm."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = cgutils.create_struct_proxy(signature.args[0])(context, builder, arguments[0])
        stride = builder.extract_value(array.strides, 0)
        number, byte = ir.IntType(64), ir.IntType(8).as_pointer()
        start = builder.add(builder.ptrtoint(array.data, number), builder.mul(stride, arguments[1]))
        form = ir.FunctionType(ir.VoidType(), [byte, *[ir.IntType(32)] * 3])
        hint = builder.module.declare_intrinsic("llvm.prefetch", [byte], form)
        how = [ir.Constant(ir.IntType(32), value) for value in (READ, KEEP, DATA)]
        for line in range(LINES):
            place = builder.add(start, ir.Constant(number, line * LINE))
            builder.call(hint, [builder.inttoptr(place, byte), *how])
        return context.get_dummy_value()

    return types.void(table, types.int64), generate
