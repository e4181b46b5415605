"""Numba types of the tables and records that `tables.py` declares.

A value of these types is a pointer, or two for all tables; an attribute is a load, or an array that points into the
tables. Such an array has no reference counter, so it must not outlive the arrays that a kernel is given.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import (
    intrinsic,
    lower_builtin,
    lower_getattr_generic,
    lower_setattr_generic,
    models,
    register_model,
    type_callable,
)
from numba.np.arrayobj import make_array, populate_array

from .tables import Field, Record, Size, Table, Tables, length_value

INDEX = ir.IntType(64)
BYTES_PER_NUMBER = 8
FIELD_TYPES = {int: types.int64, float: types.float64, bool: types.boolean}


class TablesType(types.Type):
    """Type of the tables of a declaration."""

    def __init__(self, declaration: type[Tables]) -> None:
        self.declaration = declaration
        super().__init__(f"Tables({declaration.__name__})")


class RecordType(types.Type):
    """Type of a record."""

    def __init__(self, declaration: type[Record], has_ints: bool) -> None:
        self.declaration, self.has_ints = declaration, has_ints
        super().__init__(f"{type(self).__name__}({declaration.__name__}, {has_ints})")


class RecordArrayType(RecordType):
    """Type of an array of records."""


@register_model(TablesType)
class _TablesModel(models.StructModel):
    def __init__(self, manager: Any, tables: TablesType) -> None:
        members = [("ints", types.CPointer(types.int64)), ("floats", types.CPointer(types.float64))]
        super().__init__(manager, tables, members)


@register_model(RecordType)
@register_model(RecordArrayType)
class _RecordModel(models.PrimitiveModel):
    def __init__(self, manager: Any, record: RecordType) -> None:
        super().__init__(manager, record, (INDEX if record.has_ints else ir.DoubleType()).as_pointer())


def _number_type(has_ints: bool) -> Any:
    return types.int64 if has_ints else types.float64


def _array_type(has_ints: bool, ndim: int) -> Any:
    return types.Array(_number_type(has_ints), ndim, "C")


@infer_getattr
class _TablesAttributes(AttributeTemplate):
    key = TablesType

    def generic_resolve(self, tables: TablesType, name: str) -> Any:
        if name in ("ints", "floats"):
            return _array_type(name == "ints", 1)
        declared = vars(tables.declaration).get(name)
        if isinstance(declared, Size):
            return types.int64
        if not isinstance(declared, Table):
            return None
        if declared.record_type is None:
            return _array_type(declared.has_ints, len(declared.shape))
        return (RecordArrayType if declared.shape else RecordType)(declared.record_type, declared.has_ints)


@infer_getattr
class _RecordAttributes(AttributeTemplate):
    key = RecordType

    def generic_resolve(self, record: RecordType, name: str) -> Any:
        if name == "values":
            return _array_type(record.has_ints, 1)
        field = vars(record.declaration).get(name)
        if not isinstance(field, Field):
            return None
        return FIELD_TYPES[field.type] if field.count is None else _array_type(record.has_ints, 1)


class _Integer:
    """An integer of generated code, with the operators that combine lengths."""

    def __init__(self, builder: Any, value: Any) -> None:
        self.builder, self.value = builder, value

    def __add__(self, term: Any) -> _Integer:
        return _Integer(self.builder, self.builder.add(self.value, self._generated(term)))

    def __mul__(self, factor: Any) -> _Integer:
        return _Integer(self.builder, self.builder.mul(self.value, self._generated(factor)))

    def _generated(self, number: Any) -> Any:
        return number.value if isinstance(number, _Integer) else INDEX(number)


def _array(context: Any, builder: Any, array_type: Any, data: Any, shape: Sequence[Any]) -> Any:
    """Return a C-contiguous array that points to `data`, with a shape of generated integers."""
    array = make_array(array_type)(context, builder)
    strides = [INDEX(BYTES_PER_NUMBER)]
    for length in shape[:0:-1]:
        strides.insert(0, builder.mul(strides[0], length))
    populate_array(array, data=data, shape=shape, strides=strides, itemsize=INDEX(BYTES_PER_NUMBER), meminfo=None)
    return array._getvalue()


@lower_getattr_generic(TablesType)
def _tables_attribute(context: Any, builder: Any, tables: TablesType, value: Any, name: str) -> Any:
    pointers = cgutils.create_struct_proxy(tables)(context, builder, value=value)
    if name in ("ints", "floats"):  # the length is not known, and not needed without negative indices
        return _array(context, builder, _array_type(name == "ints", 1), getattr(pointers, name), [INDEX(2**60)])

    def read(declared: Any) -> Any:
        return builder.load(builder.gep(pointers.ints, [INDEX(declared.index)]))

    declared = vars(tables.declaration)[name]
    if isinstance(declared, Size):
        return read(declared)
    data = builder.gep(pointers.ints if declared.has_ints else pointers.floats, [read(declared)])
    if declared.record_type is not None:
        return data
    lengths = [length_value(axis, lambda size: _Integer(builder, read(size))) for axis in declared.shape]
    shape = [length.value if isinstance(length, _Integer) else INDEX(length) for length in lengths]
    return _array(context, builder, _array_type(declared.has_ints, len(shape)), data, shape)


@lower_getattr_generic(RecordType)
def _record_attribute(context: Any, builder: Any, record: RecordType, value: Any, name: str) -> Any:
    if name == "values":
        return _array(context, builder, _array_type(record.has_ints, 1), value, [INDEX(record.declaration.size)])
    field = vars(record.declaration)[name]
    address = builder.gep(value, [INDEX(field.offset)])
    if field.count is not None:
        return _array(context, builder, _array_type(record.has_ints, 1), address, [INDEX(field.count)])
    return context.cast(builder, builder.load(address), _number_type(record.has_ints), FIELD_TYPES[field.type])


@lower_setattr_generic(RecordType)
def _set_record_attribute(context: Any, builder: Any, signature: Any, arguments: Any, name: str) -> None:
    record, value_type = signature.args
    address = builder.gep(arguments[0], [INDEX(vars(record.declaration)[name].offset)])
    builder.store(context.cast(builder, arguments[1], value_type, _number_type(record.has_ints)), address)


@type_callable(operator.getitem)
def _type_of_record(context: Any) -> Any:
    def record_type(records: Any, index: Any) -> Any:
        if isinstance(records, RecordArrayType) and isinstance(index, types.Integer):
            return RecordType(records.declaration, records.has_ints)
        return None

    return record_type


@lower_builtin(operator.getitem, RecordArrayType, types.Integer)
def _record(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    records, index_type = signature.args
    index = context.cast(builder, arguments[1], index_type, types.int64)
    return builder.gep(arguments[0], [builder.mul(index, INDEX(records.declaration.size))])


def compiled_opener(declaration: type[Tables]) -> Any:
    """Return an intrinsic that returns the tables of a declaration in two arrays."""
    tables = TablesType(declaration)

    @intrinsic
    def open_tables(typing: Any, ints: Any, floats: Any) -> Any:
        def generate_code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            pointers = cgutils.create_struct_proxy(tables)(context, builder)
            pointers.ints, pointers.floats = (
                make_array(array_type)(context, builder, array).data
                for array_type, array in zip(signature.args, arguments, strict=True)
            )
            return pointers._getvalue()

        return tables(ints, floats), generate_code

    return open_tables


def compiled_record_opener(declaration: type[Record]) -> Any:
    """Return an intrinsic that returns the record at the start of an array."""
    return _pointer_intrinsic(declaration, RecordType)


def compiled_records_opener(declaration: type[Record]) -> Any:
    """Return an intrinsic that returns the rows of an array as records."""
    return _pointer_intrinsic(declaration, RecordArrayType)


def _pointer_intrinsic(declaration: type[Record], record_type: type[RecordType]) -> Any:
    @intrinsic
    def open_array(typing: Any, numbers: Any) -> Any:
        def generate_code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return make_array(signature.args[0])(context, builder, arguments[0]).data

        return record_type(declaration, numbers.dtype == types.int64)(numbers), generate_code

    return open_array


def _view(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Generate code for an array, from its arguments: an array, the index of the first entry, and the shape."""
    first, *shape = (
        context.cast(builder, argument, argument_type, types.int64)
        for argument, argument_type in zip(arguments[1:], signature.args[1:], strict=True)
    )
    data = builder.gep(make_array(signature.args[0])(context, builder, arguments[0]).data, [first])
    return _array(context, builder, signature.return_type, data, shape)


@intrinsic
def matrix_at(typing: Any, numbers: Any, first: Any, row_count: Any, column_count: Any) -> Any:
    return numbers.copy(ndim=2)(numbers, first, row_count, column_count), _view


@intrinsic
def vector_at(typing: Any, numbers: Any, first: Any, count: Any) -> Any:
    return numbers.copy(ndim=1)(numbers, first, count), _view
