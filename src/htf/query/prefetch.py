"""A hint to the processor that a row of a table will be needed soon, for compiled loops.

Fetching a row takes far longer than computing with it, and loops that go down a tree know the next
rows long before they reach them. The hint cuts the time of box counts by up to half.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

LINE = 64  # bytes that today's processors fetch at once
LINES = 4  # from the start of the row: two regions of a map, or four parts
READ, KEEP, DATA = 0, 3, 1  # what llvm.prefetch calls rw, locality and cache type


class _Prefetch:
    """Fetch the first lines of a row of a contiguous table. Rows beyond the table do no harm."""

    def __call__(self, table: Any, row: int) -> None:
        """Nothing, in a loop that is not compiled."""

    @cached_property
    def _numba_type_(self) -> Any:
        from numba.core.registry import cpu_target
        from numba.extending import intrinsic

        hint = intrinsic(_hint)
        cpu_target.typing_context.refresh()
        return cpu_target.typing_context.resolve_value_type(hint)


prefetch = _Prefetch()


def _hint(typing_context: Any, table: Any, row: Any) -> Any:  # noqa: ARG001 - numba's own form
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils

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
