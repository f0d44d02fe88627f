"""``Session``: allocates the memory of a plan and runs its steps."""
from __future__ import annotations

import contextlib
import ctypes
import json
import math
import os
import threading
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Mapping, Optional, Sequence, Union

from . import _native
from ._batches import Batch, dense
from ._handles import Handle
from .errors import DoesNotFit, SettingError, nearest
from .planning import Plan

if TYPE_CHECKING:
    import numpy

Arrays = Mapping[str, Any]


class Step:
    """The results of a step."""

    __slots__ = ("index", "loss", "grad_norm", "seconds", "learning_rate", "loss_scale", "skipped")

    def __init__(self, index: int, loss: float, grad_norm: float, seconds: float, learning_rate: float, loss_scale: float,
                 skipped: bool) -> None:
        #: number of this step, from 1 on; saved and loaded with the session
        self.index = index
        #: loss before the update; the mean over the parts of an accumulated step
        self.loss = loss
        #: norm of all gradients, before clipping
        self.grad_norm = grad_norm
        self.seconds = seconds
        self.learning_rate = learning_rate
        #: factor of the loss; 1 if it is not scaled
        self.loss_scale = loss_scale
        #: whether a scaled gradient overflowed, so that nothing was updated
        self.skipped = skipped

    def __repr__(self) -> str:
        return f"Step({', '.join(f'{name}={getattr(self, name)!r}' for name in self.__slots__)})"


class Session:
    """Allocates the memory of a plan and initialises the parameters from ``seed``. A context manager; ``close`` frees it.

    A session may be used from several threads; calls wait for each other. Ctrl-C during a step raises
    ``KeyboardInterrupt`` after the step has completed, and the session remains usable.
    """

    def __init__(self, plan: Plan, seed: int = 0) -> None:
        if not isinstance(plan, Plan):
            raise SettingError(f"Session: expected a plan, got a {type(plan).__name__}", "plimsoll.plan(module, …)")
        if plan._is_run:
            raise SettingError("Session: this plan is of a run file", "plimsoll.Trainer trains whole runs")
        if isinstance(seed, bool) or not hasattr(seed, "__index__") or seed < 0:
            raise SettingError(f"Session: the seed is {seed!r}, expected an integer of at least 0")
        plan._handle.check_process("plan")
        if not plan.fits:
            raise DoesNotFit(f"the plan needs {plan.peak_bytes} bytes and its budget is {plan.budget_bytes}",
                             f"memory_budget={plan.least_bytes} is the smallest that fits; smaller batches, checkpoint() and "
                             "AdamW8bit need less", plan.least_bytes or 0)
        #: the plan that this session runs
        self.plan = plan
        self._shapes = {**plan.parameters, **plan.buffers}
        self._counts = {b["name"] for b in plan._report.get("buffers", []) if b.get("dtype") == "int64"}
        self._stored = {p["name"]: tuple(p["stored"]) for p in plan._report.get("parameters", []) if "stored" in p}
        created = _native.create("pls_session_create", plan._handle.value, _native.text({"seed": int(seed)}))
        self._handle = Handle(created, "pls_session_free")
        self._lock = threading.RLock()
        self._batch = Batch()
        self._views = 0
        self._closed = False
        self._results = (ctypes.c_double * _native.STEP_RESULTS)()
        self._index = ctypes.c_int64()
        if plan._initial is not None:
            self.load_state_dict(plan._initial())

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    def close(self) -> None:
        """Frees the memory, or, while arrays of ``view`` exist, leaves it to the last of them."""
        handle = getattr(self, "_handle", None)
        if handle is None or os.getpid() != handle.pid:
            return
        del handle
        with self._lock:
            if not self._closed:
                self._closed = True
                self._batch.close()
                del self._handle  # arrays of views refer to it, too

    @contextlib.contextmanager
    def _used(self) -> Iterator[int]:
        """The library's handle, for one caller at a time. Errors: a closed session, a forked process."""
        handle: Optional[Handle] = getattr(self, "_handle", None)
        if handle is not None:
            handle.check_process("session")
        with self._lock:
            if self._closed:
                raise SettingError("this session is closed", "make another one of the plan: Session(plan)")
            yield self._handle.value

    # ---- steps

    def step(self, batch: Union[Arrays, Sequence[Arrays]], lr: Optional[float] = None, accumulate: int = 1) -> Step:
        """One update.

        :param batch: an array for each input, by name: numpy, DLPack (PyTorch on the CPU and others) or lists.
        :param lr: the learning rate of this step; by default the optimizer's.
        :param accumulate: the number of parts of the step. The batch is that many times as long as the plan's on axis 0, or a
            list of that many batches. Loss and gradient are the mean over the parts.
        """
        if lr is not None and not (isinstance(lr, (int, float)) or hasattr(lr, "__float__")):
            raise SettingError(f"step: lr is {lr!r}, expected a number")
        rate = math.nan if lr is None else float(lr)
        if lr is not None and math.isnan(rate):
            raise SettingError(f"step: lr is {lr!r}, expected a number")
        with self._used() as handle:
            if self._views:
                raise SettingError("step: a view of a parameter is open", "leave its with-block first")
            parts = self._parts(batch, accumulate)
            results = self._results
            try:
                self._batch.fill(parts)
                _native.call("pls_session_step", handle, self._batch.value, rate, int(accumulate),
                             ctypes.byref(self._index), results, _native.STEP_RESULTS)
            finally:
                self._batch.clear()
            return Step(self._index.value, results[0], results[1], results[2], results[3], results[4], bool(results[5]))

    def evaluate(self, batch: Arrays) -> float:
        """The loss on a batch, without dropout; BatchNorm uses its running values. Changes nothing."""
        loss = ctypes.c_double()
        with self._used() as handle:
            try:
                self._batch.fill(self._parts(batch, 1))
                _native.call("pls_session_evaluate", handle, self._batch.value, ctypes.byref(loss))
            finally:
                self._batch.clear()
        return loss.value

    def gradients(self, batch: Union[Arrays, Sequence[Arrays]], accumulate: int = 1) -> "Dict[str, numpy.ndarray]":
        """The gradient of each trained parameter, float32, as the next step would compute it: neither clipped nor scaled.
        Changes nothing."""
        with self._used() as handle:
            try:
                self._batch.fill(self._parts(batch, accumulate))
                _native.call("pls_session_gradients", handle, self._batch.value, int(accumulate), None)
            finally:
                self._batch.clear()
            trained = [p["name"] for p in self.plan._report["parameters"] if p.get("trained", True)]
            return {name: self._read(handle, b"gradient", name) for name in trained}

    @staticmethod
    def _parts(batch: Any, accumulate: Any) -> List[Arrays]:
        if isinstance(accumulate, bool) or not hasattr(accumulate, "__index__") or accumulate < 1:
            raise SettingError(f"accumulate is {accumulate!r}, expected an integer of at least 1")
        if isinstance(batch, (list, tuple)):
            if len(batch) != accumulate:
                raise SettingError(f"got {len(batch)} batches, and accumulate is {accumulate}",
                                   "give as many batches as parts")
            return list(batch)
        return [batch]

    @property
    def steps(self) -> int:
        """The number of steps, those before a ``load`` included."""
        with self._used() as handle:
            return int(_native.library().pls_session_steps(handle))

    def loss_scale(self) -> float:
        """The factor of the next loss with fp16; 1 without."""
        return float(self._state().get("loss_scale") or 1.0)

    # ---- parameters and buffers

    def names(self) -> List[str]:
        """The parameters' names, in the order of the module's attributes, and behind them the buffers'."""
        return list(self._shapes)

    def __getitem__(self, name: str) -> "numpy.ndarray":
        with self._used() as handle:
            self._check_name(name)
            return self._read(handle, b"parameter", name)

    def __contains__(self, name: object) -> bool:
        return name in self._shapes

    def __iter__(self) -> Iterator[str]:
        return iter(self._shapes)

    def __len__(self) -> int:
        return len(self._shapes)

    def state_dict(self) -> "Dict[str, numpy.ndarray]":
        """A copy of each parameter and buffer by name: float32, and int64 of num_batches_tracked. PyTorch's
        ``load_state_dict`` takes it, as tensors."""
        return {name: self[name] for name in self._shapes}

    def write(self, name: str, array: Any) -> None:
        """Sets a parameter or buffer. ``array`` has its shape; other floats are rounded to float32."""
        with self._used() as handle:
            self._check_name(name)
            numbers = dense(name, array, self._shapes[name])
            _native.call("pls_session_write", handle, name.encode(), numbers.ctypes.data, numbers.size)

    def load_state_dict(self, arrays: Mapping[str, Any]) -> None:
        """Sets all parameters and buffers. Names and shapes must be those of ``names()``; ``num_batches_tracked`` may be left
        out."""
        missing, unknown = self._shapes.keys() - arrays.keys() - self._counts, arrays.keys() - self._shapes.keys()
        if missing or unknown:
            raise SettingError(f"load_state_dict: missing {sorted(missing)}, unknown {sorted(unknown)}")
        checked = {name: dense(name, arrays[name], shape) for name, shape in self._shapes.items() if name in arrays}
        for name, array in checked.items():
            self.write(name, array)

    @contextlib.contextmanager
    def view(self, name: str) -> "Iterator[numpy.ndarray]":
        """``with session.view(name) as array``: the parameter itself, without a copy and read-only. ``step`` is refused
        within the block. An array that is kept after it shows later values and keeps the session's memory alive. Filters
        of convolutions are stored with their channels last: the view has PyTorch's shape and is not contiguous."""
        with self._used() as handle:
            self._check_name(name)
            array = self._viewed(handle, name)
            self._views += 1
        try:
            yield array
        finally:
            with self._lock:
                self._views -= 1

    def _viewed(self, handle: int, name: str) -> "numpy.ndarray":
        import numpy

        pointer, count = ctypes.c_void_p(), ctypes.c_int64()
        _native.call("pls_session_view", handle, name.encode(), ctypes.byref(pointer), ctypes.byref(count))

        class Owned(ctypes.c_float * count.value):  # type: ignore[misc]
            """Memory of the session, which this object keeps alive as the base of the array."""

        memory = Owned.from_address(pointer.value or 0)
        memory.owner = self._handle
        array = numpy.frombuffer(memory, numpy.float32)
        if name in self._stored:
            array = array.reshape(self._stored[name]).transpose(0, 3, 1, 2)
        else:
            array = array.reshape(self._shapes[name])
        array.flags.writeable = False
        return array

    def _read(self, handle: int, what: bytes, name: str) -> "numpy.ndarray":
        import numpy

        array = numpy.empty(self._shapes[name], numpy.float32)
        _native.call("pls_session_read", handle, what, name.encode(), array.ctypes.data, array.size)
        return array.astype(numpy.int64) if name in self._counts else array

    def _check_name(self, name: str) -> None:
        if name not in self._shapes:
            raise SettingError(f"there is no parameter {name!r}", nearest(str(name), self._shapes, "parameters"))

    # ---- files

    def save(self, folder: Union[str, "os.PathLike[str]"], host_state: Any = None) -> None:
        """Writes ``model.safetensors`` with the names of ``names()``, the optimizer's state, seed and steps,
        atomically. ``host_state`` is data of your own (a loader's ``state_dict()``), saved as JSON."""
        with self._used() as handle:
            _native.call("pls_session_save", handle, os.fspath(folder).encode(),
                         None if host_state is None else json.dumps(host_state).encode())

    def load(self, folder: Union[str, "os.PathLike[str]"]) -> Any:
        """Continues from a saved folder with bit-identical results, and returns the ``host_state`` that was saved with it."""
        with self._used() as handle:
            _native.call("pls_session_load", handle, os.fspath(folder).encode())
        return self.host_state

    @property
    def host_state(self) -> Any:
        """The ``host_state`` that was last saved or loaded."""
        return self._state().get("host")

    def _state(self) -> Dict[str, Any]:
        with self._used() as handle:
            return dict(json.loads(_native.library().pls_session_json(handle).decode()))

    def __repr__(self) -> str:
        return f"Session({'closed' if self._closed else f'{len(self._shapes)} parameters'})"
