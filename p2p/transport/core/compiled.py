"""Compilation of the kernels: once per version and machine, then loaded in milliseconds.

Importing Numba takes a second of CPU in every process. So it is used for compilation only: the machine code is kept
in a cache folder whose name is a hash of all kernel sources, and is loaded by LLVM alone.
With NUMBA_DISABLE_JIT=1 the same functions run as plain Python, to the same bits.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

Function = TypeVar("Function", bound=Callable[..., Any])
Entry = Callable[..., int]

_SOURCES = Path(__file__).parent
_INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
_SIGNATURE = (ctypes.c_int64, ctypes.c_void_p)
_loaded: list[Any] = []


def kernel(function: Function) -> Function:
    """Marks a function of the event core; compiled if this process compiles, plain Python otherwise."""
    if not _compiles():
        return function
    from numba import njit

    # One signature per function, taken from its annotations: otherwise it would be compiled for every mixture of
    # integer widths. No exceptions and no wrappers for Python: kernels are called by kernels.
    options = {"error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    compiled: Function = njit(_signature(function), **options)(function)
    return compiled


def _signature(function: Callable[..., Any]) -> Any:
    from numba import types

    known = {
        **{"Handle": types.CPointer(types.int64), "int": types.int64, "float": types.float64, "bool": types.boolean},
        **{"np.uint64": types.uint64, "None": types.void},
    }
    kinds = {name: known[kind] for name, kind in function.__annotations__.items()}
    returned = kinds.pop("return")
    return returned(*kinds.values())


def element_of(array: int, dtype: Any) -> Callable[[Any, int], Any]:
    """Returns a function of (h, index) that gives read and write access to an element of an array."""
    if not _compiles():

        def plain(h: Any, index: int) -> Any:
            return Element(h[array], index)

        return plain
    return _compiled_element(array, dtype)


def only_element_of(array: int, dtype: Any) -> Callable[[Any], Any]:
    """Returns the same for an array of one element, as a function of (h)."""
    if not _compiles():

        def plain(h: Any) -> Any:
            return Element(h[array], 0)

        return plain
    return _compiled_element(array, dtype, only=True)


def copy_within(array: int, dtype: Any) -> Callable[[Any, int, int], None]:
    """Returns a function of (h, target, source) that copies one element of an array over another."""
    if not _compiles():

        def plain(h: Any, target: int, source: int) -> None:
            h[array][target] = h[array][source]

        return plain
    return _compiled_copy(array, dtype)


class Element:
    """An array element with its fields as attributes; numpy's own records hide fields such as `size`."""

    __slots__ = ("_array", "_index")

    def __init__(self, array: Any, index: int) -> None:
        object.__setattr__(self, "_array", array)
        object.__setattr__(self, "_index", index)

    def __getattr__(self, name: str) -> Any:
        value = self._array[name][self._index]
        # Kernels compute in 64 bits whatever a field's width; numpy's floats divide by zero as C does.
        return value if value.dtype in (np.float64, np.uint64) else int(value)

    def __setattr__(self, name: str, value: Any) -> None:
        self._array[name][self._index] = value


def load(name: str, function: Callable[..., int]) -> Entry:
    """The entry point `function(h)` as machine code, or as it is if nothing is compiled."""
    if _INTERPRETED:
        return _as_c(function)
    path = cache_folder() / f"{name}.o"
    if not path.exists():
        _compile(name, function, path)
    return _link(path)


def _as_c(function: Callable[..., int]) -> Entry:
    """Silences numpy's warnings, since machine code divides by zero and overflows silently."""

    def quiet(*arguments: Any) -> int:
        with np.errstate(all="ignore"):
            return function(*arguments)

    return quiet


def is_interpreted() -> bool:
    """Returns whether kernels run as plain Python."""
    return _INTERPRETED


@cache
def cache_folder() -> Path:
    """Returns the folder with the machine code of these sources for this machine."""
    digest = hashlib.sha256()
    for source in sorted(_SOURCES.glob("*.py")):
        digest.update(source.read_bytes())
    # The CPU counts too: a home shared by several machines must not mix their instruction sets.
    digest.update(repr((_versions(), platform.machine(), _cpu())).encode())
    root = os.environ.get("PEERVEIL_CACHE") or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(root) / "peerveil" / digest.hexdigest()[:16]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        # A read-only home: the temporary folder keeps the code at least until the next boot.
        folder = Path(tempfile.gettempdir()) / f"peerveil-{os.getuid()}" / digest.hexdigest()[:16]
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder


@cache
def _compiles() -> bool:
    """Returns whether this process has to compile; decided once, before the first kernel is defined."""
    return not _INTERPRETED and not (cache_folder() / "event_core.o").exists()


def _versions() -> tuple[str, ...]:
    from importlib.metadata import version

    return (sys.version.split()[0], np.__version__, version("numba"), version("llvmlite"))


def _cpu() -> str:
    import llvmlite.binding as llvm

    return f"{llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()}"


def _compiled_element(array: int, dtype: Any, *, only: bool = False) -> Any:
    """Returns an intrinsic with plain address arithmetic; array objects would add minutes of compilation."""
    from llvmlite import ir
    from numba import from_dtype, types
    from numba.extending import intrinsic

    record, size = from_dtype(dtype), dtype.itemsize

    @intrinsic
    def element(context: Any, h: Any, index: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            address = _address(builder, arguments[0], array, arguments[1], signature.args[1], size)
            return builder.inttoptr(address, context.get_value_type(record))

        return record(h, index), generate

    @intrinsic
    def only_element(context: Any, h: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            first = ir.Constant(ir.IntType(64), 0)
            address = _address(builder, arguments[0], array, first, types.int64, size)
            return builder.inttoptr(address, context.get_value_type(record))

        return record(h), generate

    return only_element if only else element


def _compiled_copy(array: int, dtype: Any) -> Any:
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic

    size = dtype.itemsize

    @intrinsic
    def copy(context: Any, h: Any, target: Any, source: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            ends = [
                builder.inttoptr(
                    _address(builder, arguments[0], array, arguments[place], signature.args[place], size),
                    cgutils.voidptr_t,
                )
                for place in (1, 2)
            ]
            cgutils.raw_memcpy(builder, ends[0], ends[1], cgutils.intp_t(size), 1)
            return context.get_dummy_value()

        return types.void(h, target, source), generate

    return copy


def _address(builder: Any, h: Any, array: int, index: Any, index_type: Any, size: int) -> Any:
    """Returns the address of an element: entry `array` of the handle table plus index times size."""
    from llvmlite import ir

    word = ir.IntType(64)
    base = builder.load(builder.gep(h, [ir.Constant(word, array)], source_etype=word))
    if index_type.bitwidth < 64:
        index = (builder.sext if index_type.signed else builder.zext)(index, word)
    return builder.add(base, builder.mul(index, ir.Constant(word, size)))


def _compile(name: str, function: Callable[..., int], path: Path) -> None:
    from numba import cfunc, types

    if os.environ.get("PEERVEIL_QUIET_COMPILE") != "1":
        print("compiling the event core (once per version, some seconds) ...", file=sys.stderr, flush=True)
    signature = types.int64(types.CPointer(types.int64))
    compiled = cfunc(signature, error_model="numpy")(function)
    machine_code = compiled._library.serialize_using_object_code()[2][0]
    # Written under another name first: two processes may compile at once, and both results are valid.
    fresh = path.with_suffix(f".{os.getpid()}")
    fresh.write_bytes(len(symbol := compiled._wrapper_name.encode()).to_bytes(4, "little") + symbol + machine_code)
    fresh.replace(path)


# Once per process: an engine is never freed, and a worker of a sweep builds hundreds of worlds.
@cache
def _link(path: Path) -> Entry:
    import llvmlite.binding as llvm

    data = path.read_bytes()
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    length = int.from_bytes(data[:4], "little")
    symbol = data[4 : 4 + length].decode()
    machine = llvm.Target.from_default_triple().create_target_machine(jit=True)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(data[4 + length :]))
    engine.finalize_object()
    _loaded.append(engine)  # the code lives as long as its engine
    # PYFUNCTYPE keeps the interpreter's lock: most calls take less time than releasing it would.
    return ctypes.PYFUNCTYPE(*_SIGNATURE)(engine.get_function_address(symbol))


def handle_table(arrays: Sequence[Any]) -> tuple[Any, Any]:
    """Returns the handle table to pass as `h`, and the object that must stay alive meanwhile."""
    if _INTERPRETED:
        return list(arrays), arrays
    table = np.array([array.ctypes.data for array in arrays], dtype=np.int64)
    return table.ctypes.data, table
