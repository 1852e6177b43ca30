"""Eight numbers at a time: label counts are added up by vector instructions, spelled out here.

The compiler does not find this by itself: numba switches LLVM's vectoriser of straight-line code off, and loops this
short are unrolled before the other one looks at them.
"""

import numpy as np
from llvmlite import ir
from numba import config, types
from numba.extending import intrinsic

LANES = 8


def _add_lanes_python(a, i, b, j, factor):
    """Add `factor * b[j]` to `a[i]`, both of LANES numbers; return the dot product of a[i] and b[j] as they were.

    `a` and `b` are C-contiguous with LANES columns; rows are given by unsigned integers. A factor of 0 only asks.
    """
    x, y = a[i].copy(), b[j].astype(a.dtype)
    a[i] += factor * y
    return a.dtype.type(np.dot(x, y))


@intrinsic
def _add_lanes_compiled(typingctx, a, i, b, j, factor):
    if not (isinstance(a, types.Array) and isinstance(b, types.Array)):
        return None
    signature = a.dtype(a, types.uint64, b, types.uint64, a.dtype)

    def generate(context, builder, signature, args):
        def line(array_type, array, row):
            data = context.make_array(array_type)(context, builder, array).data
            first = builder.gep(data, [builder.mul(row, ir.Constant(row.type, LANES))])
            element = context.get_data_type(array_type.dtype)
            return builder.bitcast(first, ir.VectorType(element, LANES).as_pointer())

        def every(value):
            vector = ir.Constant(ir.VectorType(value.type, LANES), ir.Undefined)
            for lane in range(LANES):
                vector = builder.insert_element(vector, value, ir.Constant(ir.IntType(32), lane))
            return vector

        a_type, _, b_type, _, _ = signature.args
        width = context.get_data_type(a_type.dtype)
        a_line, b_line = line(a_type, args[0], args[1]), line(b_type, args[2], args[3])
        align_a, align_b = a_type.dtype.bitwidth // 8, b_type.dtype.bitwidth // 8
        x = builder.load(a_line, align=align_a)
        y = builder.load(b_line, align=align_b)
        if b_type.dtype != a_type.dtype:
            y = builder.fpext(y, ir.VectorType(width, LANES))
        builder.store(builder.fadd(x, builder.fmul(y, every(args[4]))), a_line, align=align_a)
        total = builder.fmul(x, y)
        step = LANES // 2
        while step:  # add halves: the same order on every processor
            mask = [lane + step if lane < step else lane for lane in range(LANES)]
            mask = ir.Constant(ir.VectorType(ir.IntType(32), LANES), mask)
            total = builder.fadd(total, builder.shuffle_vector(total, total, mask))
            step //= 2
        return builder.extract_element(total, ir.Constant(ir.IntType(32), 0))

    return signature, generate


add_lanes = _add_lanes_python if vars(config)["DISABLE_JIT"] else _add_lanes_compiled


# The lanes of each byte: 0 or 1, lowest bit first.
LANES_OF_BYTE = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little").astype(np.float32)
