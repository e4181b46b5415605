/* The extension mechanik._kernels: kernels as machine code of one or more instruction set levels, called from Python.

   kernel_table.h is generated: it lists levels, modules and kernels. The kernels themselves are in object files, one
   for each level (object_code.py). This file has the code that all kernels share: checks of arguments, calls,
   exceptions, and the choice of a level.

   Only the limited API of Python is used, so one build serves Python 3.11 and all later versions. NumPy's headers are
   not used either: the two structures that are read are declared below, and compared with NumPy at import. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "kernel_table.h"

#if defined(__x86_64__) || defined(_M_X64)
#define IS_X86_64 1
#ifdef _MSC_VER
#include <immintrin.h>
#include <intrin.h>
#else
#include <cpuid.h>
#endif
#endif

#ifdef _MSC_VER
/* kernels call hypot, which has another name in Microsoft's library */
#pragma comment(linker, "/alternatename:hypot=_hypot")
#endif

/* ---- Numba's runtime, as far as kernels need it -------------------------------------------------------------------

   Memory of arrays that kernels allocate. Their code reads `references` and `data`; the order is Numba's. */

typedef struct {
    size_t references;
    void *unused[2];
    void *data;
    size_t size;
} Memory;

void *NRT_MemInfo_alloc_aligned(size_t size, uint32_t alignment)
{
    size_t extra = sizeof(Memory) + alignment;
    Memory *memory = size > SIZE_MAX - extra ? NULL : malloc(size + extra);
    if (memory) {
        memset(memory, 0, sizeof(Memory));
        memory->references = 1;
        memory->size = size;
        memory->data = (void *)(((uintptr_t)(memory + 1) + alignment - 1) / alignment * alignment);
    }
    return memory;
}

void *NRT_MemInfo_alloc_safe_aligned(size_t size, uint32_t alignment)
{
    return NRT_MemInfo_alloc_aligned(size, alignment);
}

void *NRT_MemInfo_alloc(size_t size)
{
    return NRT_MemInfo_alloc_aligned(size, 16);
}

void *NRT_MemInfo_alloc_safe(size_t size)
{
    return NRT_MemInfo_alloc_aligned(size, 16);
}

void NRT_MemInfo_call_dtor(void *memory)
{
    free(memory);
}

void *NRT_Allocate(size_t size)
{
    return malloc(size);
}

void NRT_Free(void *memory)
{
    free(memory);
}

/* Write the strides of a contiguous array in another shape; return 0 if the array is not contiguous, else 1. */
int numba_attempt_nocopy_reshape(intptr_t ndim, const intptr_t *shape, const intptr_t *strides, intptr_t new_ndim,
                                 const intptr_t *new_shape, intptr_t *new_strides, intptr_t item_size,
                                 int is_fortran_order)
{
    intptr_t stride = item_size;
    if (is_fortran_order)
        return 0;
    for (intptr_t k = ndim - 1; k >= 0; k--) {
        if (shape[k] != 1 && strides[k] != stride)
            return 0;
        stride *= shape[k];
    }
    stride = item_size;
    for (intptr_t k = new_ndim - 1; k >= 0; k--) {
        new_strides[k] = stride;
        stride *= new_shape[k];
    }
    return 1;
}

/* ---- kernels ---------------------------------------------------------------------------------------------------- */

/* The description of an exception in a kernel, as in Numba. */
typedef struct {
    const char *pickled; /* (type, arguments, location) */
    int32_t size;
    const void *hash_or_arguments;
    const void *unwrap;
    int32_t is_allocated;
} Failure;

typedef int32_t (*Entry)(const int64_t *arguments, int64_t *results, Failure **failure);

typedef struct {
    Entry entry;
    const char *name;
    const char *arguments; /* of each, a letter d f q ? (float64, float32, int64, bool) and its number of dimensions */
    const char *results;   /* letters only: none, one, or two for a tuple */
    int releases_gil;
} Kernel;

/* The first fields of the structures PyArray_Descr and PyArrayObject of NumPy 2. */
typedef struct {
    PyObject_HEAD
    PyTypeObject *typeobj;
    char kind;
    char type;
    char byteorder;
    char former_flags;
    int type_num;
} Descriptor;

typedef struct {
    PyObject_HEAD
    char *data;
    int ndim;
    Py_ssize_t *shape;
    Py_ssize_t *strides;
    PyObject *base;
    Descriptor *descriptor;
    int flags;
} Array;

enum { C_CONTIGUOUS = 0x1, ALIGNED = 0x100, WRITEABLE = 0x400 };
static const int REQUIRED_FLAGS = C_CONTIGUOUS | ALIGNED | WRITEABLE;

/* Written when the module is imported, and only read afterwards. */
static PyTypeObject *ndarray;
static int int64_numbers[2]; /* NumPy has two types of integers that may have 64 bits */
static int float64_number, float32_number, bool_number;
static char foreign_byteorder;

static int is_array(PyObject *object)
{
    return Py_TYPE(object) == ndarray || PyType_IsSubtype(Py_TYPE(object), ndarray);
}

static int has_type(const Descriptor *descriptor, char letter)
{
    int number = descriptor->type_num;
    if (descriptor->byteorder == foreign_byteorder)
        return 0;
    switch (letter) {
    case 'd':
        return number == float64_number;
    case 'f':
        return number == float32_number;
    case 'q':
        return number == int64_numbers[0] || number == int64_numbers[1];
    default:
        return number == bool_number;
    }
}

static const char *type_name(char letter)
{
    return letter == 'd' ? "float64" : letter == 'f' ? "float32" : letter == 'q' ? "int64" : "bool";
}

/* Write a number as a value; return -1 with a Python exception if the object is no number. This may run Python code. */
static int read_number(const Kernel *kernel, Py_ssize_t k, PyObject *object, char letter, int64_t *value)
{
    double number;
    int truth;
    PyObject *integer;
    if (is_array(object)) {
        PyErr_Format(PyExc_TypeError, "%s: argument %zd is an array, not a number", kernel->name, k + 1);
        return -1;
    }
    switch (letter) {
    case 'd':
        number = PyFloat_AsDouble(object);
        if (number == -1.0 && PyErr_Occurred())
            return -1;
        memcpy(value, &number, sizeof number);
        return 0;
    case 'q':
        integer = PyNumber_Index(object);
        if (!integer)
            return -1;
        *value = PyLong_AsLongLong(integer);
        Py_DECREF(integer);
        return *value == -1 && PyErr_Occurred() ? -1 : 0;
    default:
        truth = PyObject_IsTrue(object);
        *value = truth;
        return truth < 0 ? -1 : 0;
    }
}

/* Write an array as values, its address and its lengths; return -1 with a Python exception if the kernel does not
   accept the array. */
static int read_array(const Kernel *kernel, Py_ssize_t k, PyObject *object, char letter, int ndim, int64_t *values)
{
    const Array *array = (const Array *)object;
    if (!is_array(object) || array->ndim != ndim || (array->flags & REQUIRED_FLAGS) != REQUIRED_FLAGS ||
        !has_type(array->descriptor, letter)) {
        PyErr_Format(PyExc_TypeError, "%s: argument %zd is not a contiguous, writable array of %d dimensions and type %s",
                     kernel->name, k + 1, ndim, type_name(letter));
        return -1;
    }
    values[0] = (int64_t)(intptr_t)array->data;
    for (int axis = 0; axis < ndim; axis++)
        values[1 + axis] = array->shape[axis];
    return 0;
}

static PyObject *number_from(int64_t value, char letter)
{
    double number;
    if (letter == 'q')
        return PyLong_FromLongLong(value);
    if (letter == '?')
        return PyBool_FromLong(value != 0);
    memcpy(&number, &value, sizeof number);
    return PyFloat_FromDouble(number);
}

static PyObject *result_from(const char *letters, const int64_t *values)
{
    PyObject *tuple;
    Py_ssize_t count = (Py_ssize_t)strlen(letters);
    if (count == 0)
        Py_RETURN_NONE;
    if (count == 1)
        return number_from(values[0], letters[0]);
    tuple = PyTuple_New(count);
    for (Py_ssize_t k = 0; tuple && k < count; k++) {
        PyObject *number = number_from(values[k], letters[k]);
        if (!number || PyTuple_SetItem(tuple, k, number) < 0)
            Py_CLEAR(tuple);
    }
    return tuple;
}

/* Raise the exception of a kernel. An exception whose message Numba would format becomes a RuntimeError. */
static PyObject *raise_failure(const Kernel *kernel, Failure *failure)
{
    PyObject *pickle = NULL, *loaded = NULL, *exception = NULL;
    if (failure && !failure->unwrap && (pickle = PyImport_ImportModule("pickle")))
        loaded = PyObject_CallMethod(pickle, "loads", "y#", failure->pickled, (Py_ssize_t)failure->size);
    if (loaded && PyTuple_Check(loaded) && PyTuple_Size(loaded) == 3 && PyTuple_Check(PyTuple_GetItem(loaded, 1)) &&
        PyExceptionClass_Check(PyTuple_GetItem(loaded, 0)))
        exception = PyObject_CallObject(PyTuple_GetItem(loaded, 0), PyTuple_GetItem(loaded, 1));
    if (exception) {
        PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
    } else {
        PyErr_Clear();
        PyErr_Format(PyExc_RuntimeError, "kernel %s failed because of unexpected arguments", kernel->name);
    }
    if (failure && failure->unwrap && failure->is_allocated)
        free(failure);
    Py_XDECREF(exception);
    Py_XDECREF(loaded);
    Py_XDECREF(pickle);
    return NULL;
}

static PyObject *call(const Kernel *kernel, PyObject *const *objects, Py_ssize_t count)
{
    int64_t values[VALUES_MAX], results[2] = {0, 0};
    Failure *failure = NULL;
    int32_t status;
    Py_ssize_t k, offset;
    const char *type;
    for (k = 0, offset = 0, type = kernel->arguments; *type; k++, type += 2) {
        if (k < count && type[1] == '0') {
            if (read_number(kernel, k, objects[k], type[0], &values[offset]) < 0)
                return NULL;
        }
        offset += 1 + (type[1] - '0');
    }
    if (k != count) {
        PyErr_Format(PyExc_TypeError, "%s takes %zd arguments, not %zd", kernel->name, k, count);
        return NULL;
    }
    /* arrays are read after all numbers, since the conversion of an object to a number may change arrays */
    for (k = 0, offset = 0, type = kernel->arguments; *type; k++, type += 2) {
        if (type[1] != '0' && read_array(kernel, k, objects[k], type[0], type[1] - '0', &values[offset]) < 0)
            return NULL;
        offset += 1 + (type[1] - '0');
    }
    if (kernel->releases_gil) {
        PyThreadState *thread = PyEval_SaveThread();
        status = kernel->entry(values, results, &failure);
        PyEval_RestoreThread(thread);
    } else {
        status = kernel->entry(values, results, &failure);
    }
    return status == 0 ? result_from(kernel->results, results) : raise_failure(kernel, failure);
}

/* ---- the table: for each level and kernel its description, and a function of its own --------------------------- */

#define ENTRY(level, id) mechanik_##level##__##id
#define DESCRIPTION(level, id) kernel_##level##__##id
#define FUNCTION(level, id) call_##level##__##id

#ifdef _MSC_VER
#define HIDDEN /* as all that is not exported */
#else
#define HIDDEN __attribute__((visibility("hidden")))
#endif

#define DEFINE_KERNEL(level, id, module, name, arguments, results, releases_gil)                                       \
    HIDDEN extern int32_t ENTRY(level, id)(const int64_t *, int64_t *, Failure **);                                    \
    static const Kernel DESCRIPTION(level, id) = {ENTRY(level, id), name, arguments, results, releases_gil};           \
    static PyObject *FUNCTION(level, id)(PyObject * self, PyObject *const *objects, Py_ssize_t count)                  \
    {                                                                                                                  \
        return call(&DESCRIPTION(level, id), objects, count);                                                          \
    }
#define LIST_METHOD(level, id, module, name, arguments, results, releases_gil)                                         \
    {name, (PyCFunction)(void (*)(void))FUNCTION(level, id), METH_FASTCALL, NULL},
#define LIST_MODULE(level, id, module, name, arguments, results, releases_gil) module,
#define DEFINE_KERNELS(level, text) OWN_KERNELS_##level(DEFINE_KERNEL)
#define DEFINE_METHODS(level, text)                                                                                    \
    static PyMethodDef methods_##level[] = {KERNELS_##level(LIST_METHOD){NULL, NULL, 0, NULL}};                        \
    static const char *const modules_##level[] = {KERNELS_##level(LIST_MODULE) NULL};
#define LIST_LEVEL(level, text) {text, methods_##level, modules_##level},
#define LIST_STAMP(module, stamp) {module, stamp},

LEVELS(DEFINE_KERNELS)
LEVELS(DEFINE_METHODS)

typedef struct {
    const char *name;
    PyMethodDef *methods;
    const char *const *modules; /* of each method */
} Level;

static const Level levels[] = {LEVELS(LIST_LEVEL)};
static const char *const stamps[][2] = {MODULES(LIST_STAMP)};
static const size_t LEVEL_COUNT = sizeof levels / sizeof levels[0];
static const size_t STAMP_COUNT = sizeof stamps / sizeof stamps[0];

/* ---- levels ------------------------------------------------------------------------------------------------------ */

#ifdef IS_X86_64

static void read_cpuid(uint32_t leaf, uint32_t registers[4])
{
    memset(registers, 0, 4 * sizeof registers[0]);
#ifdef _MSC_VER
    int info[4];
    __cpuid(info, (int)(leaf & 0x80000000u));
    if ((uint32_t)info[0] >= leaf) {
        __cpuidex(info, (int)leaf, 0);
        memcpy(registers, info, sizeof info);
    }
#else
    if (__get_cpuid_max(leaf & 0x80000000u, NULL) >= leaf)
        __cpuid_count(leaf, 0, registers[0], registers[1], registers[2], registers[3]);
#endif
}

/* Return the registers that the operating system saves, as the bits of XCR0. */
static uint64_t read_saved_registers(void)
{
#ifdef _MSC_VER
    return _xgetbv(0);
#else
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
#endif
}

enum { EAX, EBX, ECX, EDX };

static int has_bits(uint64_t value, uint64_t bits)
{
    return (value & bits) == bits;
}

/* Return the x86-64 psABI level of this processor: 1, 3 or 4; 1 also for level 2, which has no machine code. */
static int x86_64_level(void)
{
    const uint32_t V2_AND_V3_ECX = 1u << 0 | 1u << 9 | 1u << 12 | 1u << 13 | 1u << 19 | 1u << 20 | 1u << 22 | 1u << 23 |
                                   1u << 27 | 1u << 28 | 1u << 29;
    /* SSE3 SSSE3 FMA CX16 SSE4.1 SSE4.2 MOVBE POPCNT OSXSAVE AVX F16C */
    const uint32_t V3_EBX = 1u << 3 | 1u << 5 | 1u << 8; /* BMI1 AVX2 BMI2 */
    const uint32_t V4_EBX = 1u << 16 | 1u << 17 | 1u << 28 | 1u << 30 | 1u << 31; /* AVX512 F DQ CD BW VL */
    const uint32_t EXTENDED_ECX = 1u << 0 | 1u << 5; /* LAHF LZCNT */
    uint32_t leaf_1[4], leaf_7[4], extended_leaf[4];
    uint64_t saved_registers;
    read_cpuid(1, leaf_1);
    read_cpuid(7, leaf_7);
    read_cpuid(0x80000001u, extended_leaf);
    if (!has_bits(leaf_1[ECX], V2_AND_V3_ECX) || !has_bits(leaf_7[EBX], V3_EBX) ||
        !has_bits(extended_leaf[ECX], EXTENDED_ECX))
        return 1;
    saved_registers = read_saved_registers();
    if (!has_bits(saved_registers, 0x6)) /* SSE, AVX */
        return 1;
    return has_bits(leaf_7[EBX], V4_EBX) && has_bits(saved_registers, 0xe6) ? 4 : 3; /* also AVX-512 */
}

#endif

static int can_run(const char *level)
{
#ifdef IS_X86_64
    if (strcmp(level, "x86-64-v4") == 0)
        return x86_64_level() >= 4;
    if (strcmp(level, "x86-64-v3") == 0)
        return x86_64_level() >= 3;
#endif
    return 1;
}

static const Level *best_level(void)
{
    for (size_t k = 0; k < LEVEL_COUNT; k++)
        if (can_run(levels[k].name))
            return &levels[k];
    return NULL;
}

/* ---- the module -------------------------------------------------------------------------------------------------- */

PyDoc_STRVAR(functions_doc, "functions(module, level=None)\n--\n\n"
                            "Return the kernels of a module by name, for a level of `levels`, by default the best.");

static PyObject *functions(PyObject *self, PyObject *const *objects, Py_ssize_t count)
{
    const Level *level = best_level();
    PyObject *result, *module_name;
    const char *module;
    if (count < 1 || count > 2 || !PyUnicode_Check(objects[0]) || (count == 2 && !PyUnicode_Check(objects[1]))) {
        PyErr_SetString(PyExc_TypeError, "functions takes the name of a module and optionally the name of a level");
        return NULL;
    }
    if (count == 2) {
        const char *name = PyUnicode_AsUTF8AndSize(objects[1], NULL);
        if (!name)
            return NULL;
        level = NULL;
        for (size_t k = 0; k < LEVEL_COUNT; k++)
            if (strcmp(levels[k].name, name) == 0 && can_run(name))
                level = &levels[k];
    }
    if (!level) {
        PyErr_Format(PyExc_ValueError, "no machine code of level %R for this processor; choose one of `levels`",
                     objects[count - 1]);
        return NULL;
    }
    module = PyUnicode_AsUTF8AndSize(objects[0], NULL);
    result = module ? PyDict_New() : NULL;
    module_name = result ? PyUnicode_FromString("mechanik._kernels") : NULL;
    for (size_t k = 0; module_name && level->modules[k]; k++) {
        PyMethodDef *method = &level->methods[k];
        PyObject *function;
        if (strcmp(level->modules[k], module) != 0)
            continue;
        function = PyCFunction_NewEx(method, NULL, module_name);
        if (!function || PyDict_SetItemString(result, method->ml_name, function) < 0)
            Py_CLEAR(result);
        Py_XDECREF(function);
        if (!result)
            break;
    }
    if (!module_name)
        Py_CLEAR(result);
    Py_XDECREF(module_name);
    return result;
}

/* Return an integer attribute, or an attribute of an attribute ("dtype", "num"); -1 with an exception on failure. */
static long long attribute(PyObject *object, const char *name, const char *inner_name)
{
    PyObject *inner, *value = PyObject_GetAttrString(object, name);
    long long number;
    if (value && inner_name) {
        inner = PyObject_GetAttrString(value, inner_name);
        Py_DECREF(value);
        value = inner;
    }
    number = value ? PyLong_AsLongLong(value) : -1;
    Py_XDECREF(value);
    return number;
}

/* Return NumPy's number of a type; -1 with an exception if there is none. */
static int type_number(PyObject *numpy, const char *name)
{
    PyObject *type = PyObject_CallMethod(numpy, "dtype", "s", name);
    int number = type ? (int)attribute(type, "num", NULL) : -1;
    Py_XDECREF(type);
    return number;
}

/* Return whether the memory of an array has the layout that is declared above, by comparison with its attributes.
   Pointers are followed only after all other fields agree. */
static int has_declared_layout(PyObject *object, int flags)
{
    const Array *array = (const Array *)object;
    PyObject *descriptor = PyObject_GetAttrString(object, "dtype");
    long long address = attribute(object, "ctypes", "data");
    int is_same = descriptor && address == (long long)(intptr_t)array->data && array->ndim == 2 &&
                  (PyObject *)array->descriptor == descriptor && array->flags == attribute(object, "flags", "num") &&
                  (array->flags & REQUIRED_FLAGS) == flags;
    is_same = is_same && array->shape[0] * array->shape[1] == 6 &&
              array->strides[array->shape[0] == 2] == 8 && array->strides[array->shape[0] != 2] == 24 &&
              array->descriptor->type_num == attribute(object, "dtype", "num") && array->descriptor->kind == 'f' &&
              array->descriptor->byteorder == '=';
    Py_XDECREF(descriptor);
    return is_same && !PyErr_Occurred();
}

/* Compare NumPy with the structures that are read here; -1 with an exception if they differ. */
static int check_numpy(PyObject *numpy)
{
    const union {
        uint16_t number;
        char bytes[2];
    } order = {1};
    PyObject *array = PyObject_CallMethod(numpy, "zeros", "((ii)s)", 2, 3, "float64");
    PyObject *transposed = array ? PyObject_GetAttrString(array, "T") : NULL;
    PyObject *status = NULL;
    int is_same = 0;
    foreign_byteorder = order.bytes[0] ? '>' : '<';
    if (transposed && attribute((PyObject *)Py_TYPE(array), "__basicsize__", NULL) >= (long long)sizeof(Array) &&
        is_array(array)) {
        PyObject *descriptor = PyObject_GetAttrString(array, "dtype");
        is_same = descriptor &&
                  attribute((PyObject *)Py_TYPE(descriptor), "__basicsize__", NULL) >= (long long)sizeof(Descriptor) &&
                  has_declared_layout(array, REQUIRED_FLAGS) && has_declared_layout(transposed, ALIGNED | WRITEABLE);
        Py_XDECREF(descriptor);
        status = PyObject_CallMethod(array, "setflags", "i", 0);
        is_same = is_same && status && has_declared_layout(array, C_CONTIGUOUS | ALIGNED);
    }
    Py_XDECREF(status);
    Py_XDECREF(transposed);
    Py_XDECREF(array);
    float64_number = type_number(numpy, "float64");
    float32_number = type_number(numpy, "float32");
    bool_number = type_number(numpy, "bool");
    int64_numbers[0] = type_number(numpy, "int64");
    int64_numbers[1] = type_number(numpy, "longlong");
    if (PyErr_Occurred() || !is_same) {
        PyErr_Clear();
        PyErr_SetString(PyExc_ImportError, "the arrays of this NumPy have another memory layout than those of NumPy 2");
        return -1;
    }
    return 0;
}

static PyObject *make_stamps(void)
{
    PyObject *result = PyDict_New();
    for (size_t k = 0; result && k < STAMP_COUNT; k++) {
        PyObject *stamp = PyUnicode_FromString(stamps[k][1]);
        if (!stamp || PyDict_SetItemString(result, stamps[k][0], stamp) < 0)
            Py_CLEAR(result);
        Py_XDECREF(stamp);
    }
    return result;
}

/* Return the names of the levels that this processor can run, the best first. */
static PyObject *make_levels(void)
{
    PyObject *tuple, *list = PyList_New(0);
    for (size_t k = 0; list && k < LEVEL_COUNT; k++) {
        PyObject *name;
        if (!can_run(levels[k].name))
            continue;
        name = PyUnicode_FromString(levels[k].name);
        if (!name || PyList_Append(list, name) < 0)
            Py_CLEAR(list);
        Py_XDECREF(name);
    }
    tuple = list ? PyList_AsTuple(list) : NULL;
    Py_XDECREF(list);
    return tuple;
}

static int add_attribute(PyObject *module, const char *name, PyObject *value)
{
    int status = value ? PyModule_AddObjectRef(module, name, value) : -1;
    Py_XDECREF(value);
    return status;
}

static PyMethodDef module_methods[] = {
    {"functions", (PyCFunction)(void (*)(void))functions, METH_FASTCALL, functions_doc},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "mechanik._kernels", "Kernels as machine code.", -1, module_methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__kernels(void)
{
    PyObject *module, *numpy = PyImport_ImportModule("numpy");
    const Level *best = best_level();
    int status;
    if (!numpy)
        return NULL;
    if (!best) {
        Py_DECREF(numpy);
        PyErr_SetString(PyExc_ImportError, "there is no machine code for this processor");
        return NULL;
    }
    ndarray = (PyTypeObject *)PyObject_GetAttrString(numpy, "ndarray"); /* never released */
    status = ndarray ? check_numpy(numpy) : -1;
    Py_DECREF(numpy);
    module = status < 0 ? NULL : PyModule_Create(&definition);
    if (module && (add_attribute(module, "stamps", make_stamps()) < 0 ||
                   add_attribute(module, "levels", make_levels()) < 0 ||
                   add_attribute(module, "level", PyUnicode_FromString(best->name)) < 0))
        Py_CLEAR(module);
    return module;
}
