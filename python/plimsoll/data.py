"""A loader of batches for training loops: threads read rows ahead; the order depends on (seed, epoch) alone."""
from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Mapping, Optional, Sequence

from .errors import DataError, SettingError

if TYPE_CHECKING:
    import numpy

Batch = Dict[str, "numpy.ndarray"]


class DataLoader:
    """Batches of a data set with ``__len__`` and ``__getitem__``, whose rows are dicts of arrays or numbers.

    Each ``iter()`` is the next epoch. Iterating gives dicts of arrays ``[batch_size, …]``. The order of the rows
    depends on ``seed`` and the epoch, not on ``workers`` and ``prefetch``. The last batch of an epoch is dropped
    if it is not full, since a plan's shapes are fixed; ``drop_last=False`` returns it.

    :param workers: threads that call ``__getitem__``; 0: the calling thread does. The threads end with the loop.
    :param prefetch: batches that each worker reads ahead.
    """

    def __init__(self, dataset: Any, batch_size: int = 1, shuffle: bool = False, seed: int = 0, workers: int = 0,
                 prefetch: int = 2, drop_last: bool = True) -> None:
        for name, value, least in (("batch_size", batch_size, 1), ("workers", workers, 0), ("prefetch", prefetch, 1)):
            if isinstance(value, bool) or not hasattr(value, "__index__") or value < least:
                raise SettingError(f"DataLoader: {name} is {value!r}, expected an integer of at least {least}")
        if not hasattr(dataset, "__len__") or not hasattr(dataset, "__getitem__"):
            raise SettingError(f"DataLoader: {type(dataset).__name__} has no __len__ and __getitem__",
                               "a data set is indexed; iterate over a stream of batches by yourself")
        self.dataset, self.batch_size, self.shuffle, self.seed = dataset, int(batch_size), bool(shuffle), int(seed)
        self.workers, self.prefetch, self.drop_last = int(workers), int(prefetch), bool(drop_last)
        #: the epoch that the next ``iter()`` gives, from 0
        self.epoch = 0
        self._position = 0  # batches of that epoch that are left out: they were read before
        self._running_epoch = 0
        self._done: Optional[int] = None  # batches taken of the running epoch; None: no epoch was begun

    def __len__(self) -> int:
        """The number of batches of an epoch."""
        rows = len(self.dataset)
        return rows // self.batch_size if self.drop_last else -(-rows // self.batch_size)

    def order(self, epoch: int) -> "numpy.ndarray":
        """The rows' indices in the order of that epoch, int64 [rows]."""
        import numpy

        from . import _native

        rows = len(self.dataset)
        positions = numpy.arange(rows, dtype=numpy.int64)
        if self.shuffle and rows:
            _native.order(self.seed, epoch, positions)
        return positions

    def state_dict(self) -> Dict[str, int]:
        """Where the loader stands: give it to ``load_state_dict`` to read on behind the last batch that was taken."""
        if self._done is not None and self._done < len(self):
            return {"epoch": self._running_epoch, "position": self._done}
        return {"epoch": self.epoch, "position": self._position}

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """Continues where ``state_dict`` was taken; data set, batch size and seed must be the same."""
        try:
            self.epoch, self._position = int(state["epoch"]), int(state["position"])
        except (KeyError, TypeError, ValueError):
            raise DataError(f"DataLoader: {state!r} is no state of a loader") from None
        self._done = None

    def __iter__(self) -> Iterator[Batch]:
        epoch, first = self.epoch, self._position
        if len(self) == 0:
            raise DataError(f"DataLoader: {len(self.dataset)} rows are fewer than one batch of {self.batch_size}",
                            "lower batch_size, or give drop_last=False")
        self.epoch, self._position = epoch + 1, 0
        self._running_epoch, self._done = epoch, first
        order = self.order(epoch)
        batches = [order[i * self.batch_size:(i + 1) * self.batch_size] for i in range(first, len(self))]
        return self._counted(_read_ahead(self, batches) if self.workers else map(self._read, batches), first)

    def _counted(self, batches: Iterator[Batch], first: int) -> Iterator[Batch]:
        for self._done, batch in enumerate(batches, first + 1):
            yield batch

    def _read(self, rows: "numpy.ndarray") -> Batch:
        return collate([(int(row), self.dataset[int(row)]) for row in rows])


def collate(rows: Sequence[Any]) -> Batch:
    """Stacks (index, row) pairs into one dict of arrays [rows, …]; numbers in rows become float32 or int64."""
    import numpy

    first_index, first = rows[0]
    for index, row in rows:
        if not isinstance(row, Mapping):
            raise DataError(f"row {index} of the data set is a {type(row).__name__}",
                            "each row is a dict: {name: array or number}")
        if row.keys() != first.keys():
            raise DataError(f"row {index} of the data set has {sorted(row)}, row {first_index} has {sorted(first)}")
    batch = {}
    for name in first:
        columns = [_plain(row[name]) for _, row in rows]
        for (index, _), column in zip(rows, columns):
            if column.shape != columns[0].shape:
                raise DataError(f"{name}: row {index} of the data set has shape {list(column.shape)}, row {first_index} "
                                f"has {list(columns[0].shape)}", "a plan's shapes are fixed: cut or pad the rows")
        batch[name] = numpy.stack(columns)
    return batch


def _plain(value: Any) -> "numpy.ndarray":
    import numpy

    if hasattr(value, "detach"):
        value = value.detach()
    array = numpy.asarray(value)
    if array.dtype == numpy.float64 and not hasattr(value, "dtype"):
        array = array.astype(numpy.float32)  # Python's numbers, which have no dtype
    if array.dtype == object:
        raise DataError(f"a row holds a {type(value).__name__}", "rows hold arrays and numbers")
    return array


class _Reader:
    """State that the threads of one epoch share: the batches to read, and the results."""

    def __init__(self, loader: DataLoader, batches: List["numpy.ndarray"]) -> None:
        self.read, self.batches = loader._read, batches
        self.ahead = loader.workers * loader.prefetch
        self.changed = threading.Condition()
        self.results: Dict[int, Any] = {}
        self.next, self.taken, self.ended = 0, 0, False

    def work(self) -> None:
        while True:
            with self.changed:
                self.changed.wait_for(lambda: self.ended or self.next >= len(self.batches)
                                      or self.next < self.taken + self.ahead)
                if self.ended or self.next >= len(self.batches):
                    return
                index, self.next = self.next, self.next + 1
            error: Optional[BaseException] = None
            batch: Optional[Batch] = None
            try:
                batch = self.read(self.batches[index])
            except BaseException as caught:  # it is raised again in the loop
                error = caught
            with self.changed:
                self.results[index] = (batch, error)
                self.changed.notify_all()

    def take(self, index: int) -> Batch:
        with self.changed:
            self.changed.wait_for(lambda: index in self.results)
            batch, error = self.results.pop(index)
            self.taken = index + 1
            self.changed.notify_all()
        if error is not None:
            raise error
        return batch  # type: ignore[no-any-return]

    def end(self) -> None:
        with self.changed:
            self.ended = True
            self.changed.notify_all()


def _read_ahead(loader: DataLoader, batches: List["numpy.ndarray"]) -> Iterator[Batch]:
    reader = _Reader(loader, batches)
    threads: "deque[threading.Thread]" = deque()
    try:
        for _ in range(min(loader.workers, len(batches))):
            thread = threading.Thread(target=reader.work, name="plimsoll-loader", daemon=True)
            thread.start()
            threads.append(thread)
        for index in range(len(batches)):
            yield reader.take(index)
    finally:
        reader.end()
        for thread in threads:
            thread.join()
