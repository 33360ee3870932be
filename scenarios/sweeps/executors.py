"""Where cells run: every pool has a `concurrent.futures.Executor`, opened by name.

`processes` of this machine, `serial` in this process, `dask` (a cluster on this machine), `tcp://...` (an existing Dask
cluster), or `module:function`, which returns an executor.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import forkserver
from typing import Any

from p2p.config.errors import UserError
from scenarios.sweeps.worker_process import WorkerContext, begin_worker

_THREAD_SETTINGS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_UNKNOWN_WIDTH = 8


@dataclass(slots=True)
class WorkerPool:
    """An open executor and how many cells it runs at once.

    Attributes:
        restart: makes a new executor after a worker's death broke the old one; None if that cannot be done
        stop: ends running cells at once; finished ones are kept
    """

    executor: Executor
    width: int
    restart: Callable[[], Executor] | None = None
    stop: Callable[[], None] = lambda: None


def warm_up() -> None:
    """Starts the process that imports torch for all workers, while this one prepares the cells."""
    context = multiprocessing.get_context("forkserver")
    # Imported once in the server; workers are forked from it and share the pages.
    context.set_forkserver_preload(["scenarios.sweeps.cell_task", "scenarios.running.run", "torch"])
    with _one_thread_each():
        forkserver.ensure_running()


def check_pool(on: str) -> None:
    """Raises a `UserError` if no executor is called so."""
    if on not in _POOLS and ":" not in on:
        known = f"{', '.join(_POOLS)}, tcp://scheduler:8786 or module:function"
        raise UserError(f"--on = {on}: is unknown; write {known}")


@contextmanager
def open_pool(on: str, workers: int) -> Iterator[WorkerPool]:
    """Opens the executor called `on`; closes it afterwards, running cells included."""
    check_pool(on)
    remote = _dask if "://" in on else _named
    with _POOLS[on](workers) if on in _POOLS else remote(workers, on) as pool:
        try:
            yield pool
        except BaseException:
            pool.stop()
            raise


class SerialExecutor(Executor):
    """Runs each task when it is submitted, in this process."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Runs the task at once; returns a future that has ended."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            # `Exception` only: an interrupt must end the sweep and not a cell.
            future.set_exception(error)
        return future


@contextmanager
def _serial(workers: int) -> Iterator[WorkerPool]:
    yield WorkerPool(SerialExecutor(), 1)


@contextmanager
def _processes(workers: int) -> Iterator[WorkerPool]:
    """Starts worker processes from one that has imported torch: each then starts in milliseconds."""
    warm_up()
    context = WorkerContext()
    executors: list[ProcessPoolExecutor] = []

    def start() -> Executor:
        executor = ProcessPoolExecutor(workers, mp_context=context, initializer=begin_worker)
        executors.append(executor)
        return executor

    def stop() -> None:
        for child in multiprocessing.active_children():
            # A shutdown alone would let running cells go on to their end.
            child.terminate()
        for executor in executors:
            executor.shutdown(wait=False, cancel_futures=True)

    yield WorkerPool(start(), workers, start, stop)
    for executor in executors:
        executor.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Sets the thread counts that worker processes inherit; those of this process are restored."""
    before = {name: os.environ.get(name) for name in _THREAD_SETTINGS}
    os.environ.update(dict.fromkeys(_THREAD_SETTINGS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _dask(workers: int, address: str = "dask") -> Iterator[WorkerPool]:
    try:
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise UserError(f"--on = {address}: needs Dask; `pip install peerveil[dask]`") from error
    _silence_dask()
    try:
        if address == "dask":
            cluster = LocalCluster(
                n_workers=workers, threads_per_worker=1, dashboard_address=None, host="127.0.0.1", silence_logs=50
            )
            client = Client(cluster)
        else:
            cluster, client = None, Client(address, timeout="10s")
    except (OSError, ValueError) as error:
        raise UserError(f"--on = {address}: no scheduler answers ({error}); start one, or check the address") from error
    try:
        # Not pure: a cell that is submitted again after a loss must run again.
        executor = client.get_executor(pure=False)
        yield WorkerPool(executor, max(1, sum(client.nthreads().values())))
    finally:
        with suppress(Exception):
            client.close(timeout=5)
        if cluster is not None:
            # After the client, which would otherwise report the lost scheduler.
            cluster.close(timeout=10)


def _silence_dask() -> None:
    """Keeps Dask's own log, with tracebacks of lost connections, off the terminal: the sweep says what it means."""
    import logging

    for name in list(logging.root.manager.loggerDict):
        if name.partition(".")[0] == "distributed":
            logging.getLogger(name).setLevel(logging.CRITICAL)


@contextmanager
def _named(workers: int, name: str) -> Iterator[WorkerPool]:
    module_name, _, function_name = name.partition(":")
    # The user's own module lies where the command is given, and the name was typed by the user.
    sys.path.append(os.getcwd())
    try:
        make = getattr(importlib.import_module(module_name), function_name)
    except (ImportError, AttributeError, ValueError) as error:
        raise UserError(f"--on = {name}: cannot be imported ({error}); write module:function") from error
    executor = make()
    if not isinstance(executor, Executor):
        raise UserError(f"--on = {name}: returns {type(executor).__name__}; it must be a concurrent.futures.Executor")
    with executor:
        yield WorkerPool(executor, int(getattr(executor, "_max_workers", _UNKNOWN_WIDTH)))


_POOLS = {"processes": _processes, "serial": _serial, "dask": _dask}
