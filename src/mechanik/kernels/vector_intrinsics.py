"""The Numba vector type behind `vector.py`: its arithmetic, and the functions over a float or a vector.

The compiler may or may not turn a loop over problems into vector instructions. A vector that is a value of its own
guarantees it, so that kernels run eight problems at a time.
"""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, lower_builtin, models, register_model, type_callable


class Vector(types.Type):
    """A vector of 64-bit or 32-bit floats; an operation acts on all lanes."""

    def __init__(self, lanes: int, bits: int) -> None:
        self.lanes, self.bits = lanes, bits
        super().__init__(f"Vector({lanes}, {bits})")

    @property
    def key(self) -> tuple[int, int]:
        return self.lanes, self.bits

    @property
    def element(self) -> Any:
        return types.float64 if self.bits == 64 else types.float32

    @property
    def llvm(self) -> Any:
        return ir.VectorType(ir.DoubleType() if self.bits == 64 else ir.FloatType(), self.lanes)


@register_model(Vector)
class _Model(models.PrimitiveModel):
    def __init__(self, manager: Any, vector: Vector) -> None:
        super().__init__(manager, vector, vector.llvm)


def _spread(context: Any, builder: Any, value: Any, value_type: Any, vector: Any) -> Any:
    """Convert a value to a vector: a vector stays, a number goes into all lanes."""
    if value_type == vector:
        return value
    number = context.cast(builder, value, value_type, vector.element)
    empty = ir.Constant(vector.llvm, ir.Undefined)
    first = builder.insert_element(empty, number, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(
        first, empty, ir.Constant(ir.VectorType(ir.IntType(32), vector.lanes), [0] * vector.lanes)
    )


def _arithmetic(operation: Any, instruction: str) -> None:
    @type_callable(operation)
    def typed(context: Any) -> Any:
        def result(a: Any, b: Any) -> Any:
            if isinstance(a, Vector) and (a == b or isinstance(b, types.Number)):
                return a
            if isinstance(b, Vector) and isinstance(a, types.Number):
                return b
            return None

        return result

    def lowered(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vector = signature.return_type
        x, y = (
            _spread(context, builder, value, value_type, vector)
            for value, value_type in zip(arguments, signature.args, strict=True)
        )
        return getattr(builder, instruction)(x, y)

    for pair in ((Vector, Vector), (Vector, types.Number), (types.Number, Vector)):
        lower_builtin(operation, *pair)(lowered)


for _operation, _instruction in (
    (operator.add, "fadd"), (operator.sub, "fsub"), (operator.mul, "fmul"), (operator.truediv, "fdiv"),
    (operator.iadd, "fadd"), (operator.isub, "fsub"), (operator.imul, "fmul"), (operator.itruediv, "fdiv"),
):  # fmt: skip
    _arithmetic(_operation, _instruction)


def _element_address(context: Any, builder: Any, kinds: Any, array: Any, i: Any, vector: Any) -> Any:
    array_struct = context.make_array(kinds[0])(context, builder, array)
    address = builder.gep(array_struct.data, [context.cast(builder, i, kinds[1], types.intp)])
    return builder.bitcast(address, vector.llvm.as_pointer()) if isinstance(vector, Vector) else address


def _number(kind: Any) -> Any:
    return types.float64 if isinstance(kind, types.Number) else kind


@intrinsic
def load(typing: Any, scalar_type: Any, array: Any, i: Any) -> Any:
    result = scalar_type if isinstance(scalar_type, Vector) else array.dtype

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address = _element_address(context, builder, signature.args[1:], arguments[1], arguments[2], result)
        return builder.load(address, align=array.dtype.bitwidth // 8)

    return result(scalar_type, array, i), code


@intrinsic
def store(typing: Any, array: Any, i: Any, value: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        number = arguments[2]
        if not isinstance(value, Vector):
            number = context.cast(builder, number, value, array.dtype)
        address = _element_address(context, builder, signature.args[:2], arguments[0], arguments[1], value)
        builder.store(number, address, align=array.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(array, i, value), code


@intrinsic
def where_less(typing: Any, a: Any, b: Any, x: Any, y: Any) -> Any:
    kind = next((operand_type for operand_type in (a, b, x, y) if isinstance(operand_type, Vector)), types.float64)

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if isinstance(kind, Vector):
            operands = [
                _spread(context, builder, value, value_type, kind)
                for value, value_type in zip(arguments, signature.args, strict=True)
            ]
        else:
            operands = [
                context.cast(builder, value, value_type, kind)
                for value, value_type in zip(arguments, signature.args, strict=True)
            ]
        return builder.select(builder.fcmp_ordered("<", operands[0], operands[1]), operands[2], operands[3])

    return kind(a, b, x, y), code


@intrinsic
def root(typing: Any, x: Any) -> Any:
    kind = _number(x)

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if isinstance(kind, Vector):
            llvm, name = kind.llvm, f"llvm.sqrt.v{kind.lanes}f{kind.bits}"
        else:
            llvm, name = ir.DoubleType(), "llvm.sqrt.f64"
        function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(llvm, [llvm]), name)
        return builder.call(function, arguments)

    return kind(x), code


@intrinsic
def spread(typing: Any, scalar_type: Any, x: Any) -> Any:
    kind = _number(scalar_type)

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if isinstance(kind, Vector):
            return _spread(context, builder, arguments[1], signature.args[1], kind)
        return context.cast(builder, arguments[1], signature.args[1], kind)

    return kind(scalar_type, x), code


@intrinsic
def lanes_of(typing: Any, scalar_type: Any) -> Any:
    lanes = scalar_type.lanes if isinstance(scalar_type, Vector) else 1

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return context.get_constant(types.intp, lanes)

    return types.intp(scalar_type), code


@intrinsic
def widen(typing: Any, x: Any) -> Any:
    kind = Vector(x.lanes, 64)

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fpext(arguments[0], kind.llvm)

    return kind(x), code


def splat(lanes: int, bits: int) -> Any:
    """Make the intrinsic that puts a number into all lanes of a vector."""
    vector = Vector(lanes, bits)

    @intrinsic
    def in_all_lanes(typing: Any, x: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return _spread(context, builder, arguments[0], signature.args[0], vector)

        return vector(x), code

    return in_all_lanes
