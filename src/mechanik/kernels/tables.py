"""Declarations of the flat tables that kernels share with Python, and access to them by name.

All tables of a problem are in two arrays, one of integers and one of floats, since each array adds 0.05 us to a call
from Python. A subclass of `Tables` declares what is in them: sizes, then tables, in order. The array of integers starts
with a header, which has the sizes and then the offset of each table. A subclass of `Record` declares the fields of a
row. The declarations are the only place that knows where a number is:

    class Arm(Record):
        first_joint = integer()
        reach = number()  # m

    class Problem(Tables):
        arm_count, joint_count = Size(), Size()
        arms = float_records(Arm, arm_count)
        x = floats(joint_count)
        products = floats(arm_count, joint_count)

    open_problem = opener(Problem)

In a kernel `problem = open_problem(ints, floats)` costs nothing; `problem.joint_count` is a number, `problem.x` and
`problem.products[i]` are arrays, `problem.arms[i].reach` is a field, `problem.arms[i].values` are all numbers of a
record. Arrays and records are views, so writing to them writes to the tables. In plain Python, `Problem` itself has
these attributes; in compiled code a type of Numba that is made from the declaration (`table_types.py`). Compiled code
does not check indices, and negative indices are not allowed.

Rows of other arrays are accessed by name in the same way: for `open_arms = records_opener(Arm)` and an array `rows`
(arms, Arm.size), `open_arms(rows)[i].reach` is a field.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar, overload

import numpy as np

from .compiler import IS_PLAIN_PYTHON

Ints = np.ndarray[Any, np.dtype[np.int64]]
Floats = np.ndarray[Any, np.dtype[np.float64]]
Numbers = np.ndarray[Any, np.dtype[Any]]
Value = TypeVar("Value")
NumberType = TypeVar("NumberType", bound=np.generic)
AnyRecord = TypeVar("AnyRecord", bound="Record")


# ---- records -------------------------------------------------------------------------------------


class Field(Generic[Value]):
    """A field of a record: a number, or several consecutive numbers as an array.

    Attributes:
        type: `int`, `float` or `bool`. An integer or a flag is stored as a number of the table; an array has the type
            of the table.
        count: the number of entries; None for a single number.
        offset: index of the first entry within the record.
    """

    def __init__(self, value_type: type, count: int | None = None) -> None:
        self.type, self.count, self.offset = value_type, count, -1

    @overload
    def __get__(self, record: None, owner: type) -> Field[Value]: ...
    @overload
    def __get__(self, record: Record, owner: type) -> Value: ...
    def __get__(self, record: Record | None, owner: type) -> Field[Value] | Value:
        if record is None:
            return self
        first = record.first + self.offset
        if self.count is not None:
            entries: Any = record.numbers[first : first + self.count]
            return entries
        value: Any = record.numbers[first]
        return value if self.type is float else self.type(value)

    def __set__(self, record: Record, value: Value) -> None:
        if self.count is not None:
            raise AttributeError("assign to the entries of an array field, not to the field")
        record.numbers[record.first + self.offset] = value


def integer() -> Field[int]:
    """Declare an integer field."""
    return Field(int)


def number() -> Field[float]:
    """Declare a field with a float."""
    return Field(float)


def flag() -> Field[bool]:
    """Declare a field that is true or false, stored as 1 or 0."""
    return Field(bool)


def numbers(count: int) -> Field[Floats]:
    """Declare a field of several floats, an array (count,)."""
    return Field(float, count)


def integers(count: int) -> Field[Ints]:
    """Declare a field of several integers, an array (count,); only for records whose numbers are integers."""
    return Field(int, count)


class Record:
    """Named fields of consecutive numbers of an array, as a view. Subclasses declare the fields in order.

    Two names of one field share its numbers: `first_coefficient = first_mass`.

    Attributes:
        numbers: the array.
        first: index of the first number of the record.
        size: number of entries of every record of the class.
    """

    __slots__ = ("first", "numbers")
    size: int

    def __init__(self, numbers: Numbers, first: int = 0) -> None:
        self.numbers, self.first = numbers, first

    def __init_subclass__(cls) -> None:
        cls.size = 0
        for field in vars(cls).values():
            if isinstance(field, Field) and field.offset < 0:
                field.offset = cls.size
                cls.size += field.count or 1

    @classmethod
    def allocate(cls: type[AnyRecord], dtype: type[np.generic] = np.float64) -> AnyRecord:
        """Return a record of zeros in a new array."""
        return cls(np.zeros(cls.size, dtype))

    @classmethod
    def allocate_rows(cls: type[AnyRecord], count: int, dtype: type[np.generic] = np.float64) -> RecordArray[AnyRecord]:
        """Return `count` records of zeros in a new array."""
        return RecordArray(cls, np.zeros(count * cls.size, dtype))

    @property
    def values(self) -> Numbers:
        """All numbers of the record as a view, (size,)."""
        return self.numbers[self.first : self.first + self.size]

    def set(self, *values: float) -> None:
        """Set all numbers of the record, in the order of its fields."""
        self.assign(values)

    def assign(self, values: Sequence[float] | Numbers) -> None:
        """Set all numbers of the record to those of a sequence, in the order of its fields."""
        self.values[:] = values

    def __repr__(self) -> str:
        fields = {name: getattr(self, name) for name, field in vars(type(self)).items() if isinstance(field, Field)}
        return f"{type(self).__name__}({', '.join(f'{name}={value}' for name, value in fields.items())})"


class RecordArray(Generic[AnyRecord]):
    """The records of a table; item i is a view of record i.

    Attributes:
        rows: the numbers of the table, (count, size of a record).
    """

    __slots__ = ("_numbers", "_record_size", "_record_type")

    def __init__(self, record_type: type[AnyRecord], numbers: Numbers) -> None:
        self._record_type, self._record_size, self._numbers = record_type, record_type.size, numbers

    @property
    def rows(self) -> Numbers:
        return self._numbers.reshape(-1, self._record_size)

    def __getitem__(self, index: int) -> AnyRecord:
        return self._record_type(self._numbers, index * self._record_size)

    def __len__(self) -> int:
        return len(self._numbers) // self._record_size

    def __iter__(self) -> Iterator[AnyRecord]:
        return (self[index] for index in range(len(self)))

    def column(self, field: Field[Any]) -> Numbers:
        """Return a field of all records as a view, (count,); of an array field (count, entries)."""
        columns = self.rows[:, field.offset : field.offset + (field.count or 1)]
        return columns if field.count is not None else columns[:, 0]


# ---- lengths of tables ---------------------------------------------------------------------------


class Length:
    """A length of a table: a size, or a sum or product of lengths and numbers."""

    def __add__(self, length: Length | int) -> Length:
        return Combination(operator.add, self, length)

    def __mul__(self, length: Length | int) -> Length:
        return Combination(operator.mul, self, length)

    def value(self, read: Callable[[Size], Any]) -> Any:
        """Return the length; `read` returns the value of a size, a number or an expression of the compiler."""
        raise NotImplementedError


class Combination(Length):
    """The sum or the product of two lengths."""

    def __init__(self, operation: Callable[[Any, Any], Any], a: Length | int, b: Length | int) -> None:
        self.operation, self.a, self.b = operation, a, b

    def value(self, read: Callable[[Size], Any]) -> Any:
        return self.operation(length_value(self.a, read), length_value(self.b, read))


def length_value(length: Length | int, read: Callable[[Size], Any]) -> Any:
    """Return the value of a length, see `Length.value`."""
    return length if isinstance(length, int) else length.value(read)


class Size(Length):
    """An integer of the header, such as the number of blocks.

    Attributes:
        name: name in the declaration.
        index: index in the header.
    """

    name: str
    index: int

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def value(self, read: Callable[[Size], Any]) -> Any:
        return read(self)

    @overload
    def __get__(self, tables: None, owner: type) -> Size: ...
    @overload
    def __get__(self, tables: Tables, owner: type) -> int: ...
    def __get__(self, tables: Tables | None, owner: type) -> Size | int:
        return self if tables is None else int(tables.ints[self.index])

    def __set__(self, tables: Tables, value: int) -> None:
        tables.ints[self.index] = value


# ---- tables --------------------------------------------------------------------------------------


class Table:
    """A table of integers or of floats.

    Attributes:
        name: name in the declaration.
        index: index of its offset in the header.
        has_ints: whether it is in the array of integers.
        shape: lengths of its axes; of records their number, or () for a single record.
        record_type: the class of its records; None for an array.
    """

    name: str
    index: int

    def __init__(
        self, has_ints: bool, shape: tuple[Length | int, ...], record_type: type[Record] | None = None
    ) -> None:
        self.has_ints, self.shape, self.record_type = has_ints, shape, record_type

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def length(self, read: Callable[[Size], int]) -> int:
        """Return the number of entries; `read` returns the value of a size."""
        length = self.record_type.size if self.record_type is not None else 1
        for axis in self.shape:
            length *= length_value(axis, read)
        return length

    def view(self, tables: Tables) -> Any:
        """Return the table as an array, a record or an array of records; the result is kept in `tables`."""
        first = tables.first_entry(self)
        numbers: Numbers = tables.ints if self.has_ints else tables.floats
        numbers = numbers[first : first + self.length(tables.read_size)]
        view: Any
        if self.record_type is None:
            view = numbers
            if len(self.shape) == 2:
                row_count, column_count = (length_value(axis, tables.read_size) for axis in self.shape)
                view = plain_matrix(numbers, row_count, column_count)
        else:
            view = RecordArray(self.record_type, numbers) if self.shape else self.record_type(numbers)
        tables.__dict__[self.name] = view  # Python finds it before this descriptor
        return view


class ArrayTable(Table, Generic[NumberType]):
    """A table that is an array."""

    @overload
    def __get__(self, tables: None, owner: type) -> ArrayTable[NumberType]: ...
    @overload
    def __get__(self, tables: Tables, owner: type) -> np.ndarray[Any, np.dtype[NumberType]]: ...
    def __get__(self, tables: Tables | None, owner: type) -> Any:
        return self if tables is None else self.view(tables)


class RecordTable(Table, Generic[AnyRecord]):
    """A table of records."""

    @overload
    def __get__(self, tables: None, owner: type) -> RecordTable[AnyRecord]: ...
    @overload
    def __get__(self, tables: Tables, owner: type) -> RecordArray[AnyRecord]: ...
    def __get__(self, tables: Tables | None, owner: type) -> Any:
        return self if tables is None else self.view(tables)


class SingleRecordTable(Table, Generic[AnyRecord]):
    """A table that is one record."""

    @overload
    def __get__(self, tables: None, owner: type) -> SingleRecordTable[AnyRecord]: ...
    @overload
    def __get__(self, tables: Tables, owner: type) -> AnyRecord: ...
    def __get__(self, tables: Tables | None, owner: type) -> Any:
        return self if tables is None else self.view(tables)


def ints(*shape: Length | int) -> ArrayTable[np.int64]:
    """Declare an array of integers with a shape."""
    return ArrayTable(True, shape)


def floats(*shape: Length | int) -> ArrayTable[np.float64]:
    """Declare an array of floats with a shape."""
    return ArrayTable(False, shape)


def int_records(record_type: type[AnyRecord], count: Length) -> RecordTable[AnyRecord]:
    """Declare a table of records whose numbers are integers."""
    return RecordTable(True, (count,), record_type)


def float_records(record_type: type[AnyRecord], count: Length) -> RecordTable[AnyRecord]:
    """Declare a table of records whose numbers are floats."""
    return RecordTable(False, (count,), record_type)


def float_record(record_type: type[AnyRecord]) -> SingleRecordTable[AnyRecord]:
    """Declare a table that is one record, whose numbers are floats."""
    return SingleRecordTable(False, (), record_type)


class Tables:
    """All tables of a problem as views into two arrays. Subclasses declare the sizes and the tables in order.

    Attributes:
        ints, floats: the arrays.
        declared_sizes, declared_tables: the declarations of the class, in order.
    """

    declared_sizes: tuple[Size, ...]
    declared_tables: tuple[Table, ...]

    def __init__(self, ints: Ints, floats: Floats) -> None:
        self.ints, self.floats = ints, floats

    def __init_subclass__(cls) -> None:
        cls.declared_sizes = tuple(value for value in vars(cls).values() if isinstance(value, Size))
        cls.declared_tables = tuple(value for value in vars(cls).values() if isinstance(value, Table))
        for index, declaration in enumerate((*cls.declared_sizes, *cls.declared_tables)):
            declaration.index = index

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.ints, self.floats)  # views would become independent arrays

    def read_size(self, size: Size) -> int:
        """Return the value of a size."""
        return int(self.ints[size.index])

    def first_entry(self, table: Table) -> int:
        """Return the index of the first entry of a table in its array."""
        return int(self.ints[table.index])

    def copy(self: AnyTables) -> AnyTables:
        """Return tables in new arrays with the same numbers."""
        return type(self)(self.ints.copy(), self.floats.copy())

    @classmethod
    def allocate(cls: type[AnyTables], **sizes: int) -> AnyTables:
        """Return tables of zeros in new arrays.

        Args:
            sizes: the value of every declared size, by name.
        """
        if sizes.keys() != {size.name for size in cls.declared_sizes}:
            raise TypeError(f"the sizes of {cls.__name__} are {', '.join(size.name for size in cls.declared_sizes)}")
        header = [sizes[size.name] for size in cls.declared_sizes]
        int_count, float_count = len(header) + len(cls.declared_tables), 0
        for table in cls.declared_tables:
            header.append(int_count if table.has_ints else float_count)
            length = table.length(lambda size: sizes[size.name])
            int_count, float_count = int_count + length * table.has_ints, float_count + length * (not table.has_ints)
        ints = np.zeros(int_count, dtype=np.int64)
        ints[: len(header)] = header
        return cls(ints, np.zeros(float_count + 1))


AnyTables = TypeVar("AnyTables", bound=Tables)


# ---- in kernels ----------------------------------------------------------------------------------


class MatrixView:
    """A matrix for plain Python, in a memory view: items and rows are accessed as in an array.

    The items are numbers of Python, with which computations are two to three times as fast as with NumPy scalars.

    Attributes:
        shape: numbers of rows and columns.
    """

    __slots__ = ("_numbers", "_row_length", "shape")

    def __init__(self, numbers: Any, row_count: int, column_count: int) -> None:
        self._numbers, self._row_length, self.shape = numbers, column_count, (row_count, column_count)

    def __getitem__(self, index: Any) -> Any:
        length = self._row_length
        if type(index) is tuple:
            return self._numbers[index[0] * length + index[1]]  # type: ignore[reportUnknownVariableType]
        return self._numbers[index * length : index * length + length]

    def __setitem__(self, index: tuple[int, int], value: float) -> None:
        self._numbers[index[0] * self._row_length + index[1]] = value


def plain_matrix(numbers: Any, row_count: int, column_count: int) -> Any:
    """Return all numbers of an array, or of a memory view, as a matrix."""
    if isinstance(numbers, memoryview):
        return MatrixView(numbers, row_count, column_count)
    return numbers.reshape(row_count, column_count)


def opener(declaration: type[AnyTables]) -> Callable[[Ints, Floats], AnyTables]:
    """Return the function by which a kernel accesses the tables in two arrays, see above."""
    if IS_PLAIN_PYTHON:
        return declaration
    from .table_types import compiled_opener

    return compiled_opener(declaration)


def record_opener(declaration: type[AnyRecord]) -> Callable[[Numbers], AnyRecord]:
    """Return the function by which a kernel accesses an array (size,) as a record.

    A record does not keep its array alive: in a kernel, open only arrays that are arguments of the function.
    """
    if IS_PLAIN_PYTHON:
        return declaration
    from .table_types import compiled_record_opener

    return compiled_record_opener(declaration)


def records_opener(declaration: type[AnyRecord]) -> Callable[[Numbers], RecordArray[AnyRecord]]:
    """Return the function by which a kernel accesses the rows of an array (count, size) as records.

    Records do not keep their array alive: in a kernel, open only arrays that are arguments of the function.
    """
    if IS_PLAIN_PYTHON:
        return lambda rows: RecordArray(declaration, rows.reshape(-1))
    from .table_types import compiled_records_opener

    return compiled_records_opener(declaration)


if IS_PLAIN_PYTHON:

    def matrix_at(numbers: Numbers, first: int, row_count: int, column_count: int) -> Numbers:
        """Return consecutive entries of an array, from `first` on, as a matrix (rows, columns)."""
        return plain_matrix(numbers[first : first + row_count * column_count], row_count, column_count)

    def vector_at(numbers: Numbers, first: int, count: int) -> Numbers:
        """Return consecutive entries of an array, from `first` on, as a vector (count,)."""
        return numbers[first : first + count]

else:
    from .table_types import matrix_at as matrix_at  # type: ignore[assignment]
    from .table_types import vector_at as vector_at  # type: ignore[assignment]
