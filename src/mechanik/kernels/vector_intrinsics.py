"""The Numba vector type of `vector.py`: its arithmetic, and functions of a float or a vector.

The compiler does not always translate a loop over targets into vector instructions. A separate vector type guarantees
vector instructions, so that kernels solve for eight targets at a time. `vector.py` describes the functions.
"""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, lower_builtin, models, register_model, type_callable


class Vector(types.Type):
    """Numba type of a vector of 64-bit or 32-bit floats; operations act on each lane."""

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
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, vector: Vector) -> None:
        super().__init__(manager, vector, vector.llvm)


def _to_vector(context: Any, builder: Any, value: Any, value_type: Any, vector: Any) -> Any:
    """Convert a value to the type `vector`: a vector is returned unchanged, a number is copied to all lanes."""
    if value_type == vector:
        return value
    number = context.cast(builder, value, value_type, vector.element)
    undefined_vector = ir.Constant(vector.llvm, ir.Undefined)
    first_lane_vector = builder.insert_element(undefined_vector, number, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(
        first_lane_vector,
        undefined_vector,
        ir.Constant(ir.VectorType(ir.IntType(32), vector.lanes), [0] * vector.lanes),
    )


def _define_operator(operation: Any, instruction: str) -> None:
    """Define an operator for vectors, and for a vector and a number, by an LLVM instruction."""

    @type_callable(operation)
    def declare_type(context: Any) -> Any:
        def result_type(a: Any, b: Any) -> Any:
            if isinstance(a, Vector) and (a == b or isinstance(b, types.Number)):
                return a
            if isinstance(b, Vector) and isinstance(a, types.Number):
                return b
            return None

        return result_type

    def generate_code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vector = signature.return_type
        x, y = (
            _to_vector(context, builder, value, value_type, vector)
            for value, value_type in zip(arguments, signature.args, strict=True)
        )
        return getattr(builder, instruction)(x, y)

    for pair in ((Vector, Vector), (Vector, types.Number), (types.Number, Vector)):
        lower_builtin(operation, *pair)(generate_code)


for _operation, _instruction in (
    (operator.add, "fadd"), (operator.sub, "fsub"), (operator.mul, "fmul"), (operator.truediv, "fdiv"),
    (operator.iadd, "fadd"), (operator.isub, "fsub"), (operator.imul, "fmul"), (operator.itruediv, "fdiv"),
):  # fmt: skip
    _define_operator(_operation, _instruction)


def _element_address(context: Any, builder: Any, argument_types: Any, array: Any, i: Any, value_type: Any) -> Any:
    """Return the address of array[i], as a pointer to a vector if `value_type` is a vector type."""
    array_struct = context.make_array(argument_types[0])(context, builder, array)
    address = builder.gep(array_struct.data, [context.cast(builder, i, argument_types[1], types.intp)])
    return builder.bitcast(address, value_type.llvm.as_pointer()) if isinstance(value_type, Vector) else address


def _computation_type(operand_type: Any) -> Any:
    """Return the type to compute with: `float64` for any number type, a vector type unchanged."""
    return types.float64 if isinstance(operand_type, types.Number) else operand_type


@intrinsic
def load(typing: Any, like: Any, array: Any, i: Any) -> Any:
    result_type = like if isinstance(like, Vector) else array.dtype

    def generate_code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address = _element_address(context, builder, signature.args[1:], arguments[1], arguments[2], result_type)
        return builder.load(address, align=array.dtype.bitwidth // 8)

    return result_type(like, array, i), generate_code


@intrinsic
def store(typing: Any, array: Any, i: Any, value: Any) -> Any:
    def generate_code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        number = arguments[2]
        if not isinstance(value, Vector):
            number = context.cast(builder, number, value, array.dtype)
        address = _element_address(context, builder, signature.args[:2], arguments[0], arguments[1], value)
        builder.store(number, address, align=array.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(array, i, value), generate_code


@intrinsic
def where_less(typing: Any, a: Any, b: Any, x: Any, y: Any) -> Any:
    result_type = next(
        (operand_type for operand_type in (a, b, x, y) if isinstance(operand_type, Vector)), types.float64
    )

    def generate_code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if isinstance(result_type, Vector):
            operands = [
                _to_vector(context, builder, value, value_type, result_type)
                for value, value_type in zip(arguments, signature.args, strict=True)
            ]
        else:
            operands = [
                context.cast(builder, value, value_type, result_type)
                for value, value_type in zip(arguments, signature.args, strict=True)
            ]
        return builder.select(builder.fcmp_ordered("<", operands[0], operands[1]), operands[2], operands[3])

    return result_type(a, b, x, y), generate_code


@intrinsic
def root(typing: Any, x: Any) -> Any:
    result_type = _computation_type(x)

    def generate_code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if isinstance(result_type, Vector):
            llvm, name = result_type.llvm, f"llvm.sqrt.v{result_type.lanes}f{result_type.bits}"
        else:
            llvm, name = ir.DoubleType(), "llvm.sqrt.f64"
        function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(llvm, [llvm]), name)
        return builder.call(function, arguments)

    return result_type(x), generate_code


@intrinsic
def broadcast(typing: Any, like: Any, x: Any) -> Any:
    result_type = _computation_type(like)

    def generate_code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if isinstance(result_type, Vector):
            return _to_vector(context, builder, arguments[1], signature.args[1], result_type)
        return context.cast(builder, arguments[1], signature.args[1], result_type)

    return result_type(like, x), generate_code


@intrinsic
def lanes_of(typing: Any, like: Any) -> Any:
    lanes = like.lanes if isinstance(like, Vector) else 1

    def generate_code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return context.get_constant(types.intp, lanes)

    return types.intp(like), generate_code


@intrinsic
def widen(typing: Any, x: Any) -> Any:
    result_type = Vector(x.lanes, 64)

    def generate_code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fpext(arguments[0], result_type.llvm)

    return result_type(x), generate_code


def broadcast_intrinsic(lanes: int, bits: int) -> Any:
    """Return an intrinsic that copies a number to all lanes of a vector."""
    vector = Vector(lanes, bits)

    @intrinsic
    def broadcast_number(typing: Any, x: Any) -> Any:
        def generate_code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return _to_vector(context, builder, arguments[0], signature.args[0], vector)

        return vector(x), generate_code

    return broadcast_number
