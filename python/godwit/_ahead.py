"""Reading batches ahead, and announcing their rows."""

from __future__ import annotations

import time
from collections import deque
from typing import Any, Callable, Iterable, Iterator

from . import _buffers
from ._cluster import Table, Worker, cluster

MOST = 64  # batches that are read ahead
AHEAD = 0.1  # seconds that are announced ahead, where batches are so few

_END: Any = object()  # comes after the last batch


class Lookahead:
    """What :func:`lookahead` returns: iterate over it once for each epoch."""

    def __init__(self, loader: Any, keys: Callable[[Any], Any], worker: Worker | None = None) -> None:
        if not callable(keys):
            raise TypeError(f"keys of lookahead are a {type(keys).__name__}, want a function of a batch")
        self.loader, self.keys = loader, keys
        self._worker = worker
        self._delivered: Any = None  # the loader's state after the batch that was delivered last, unless the loop is over

    def __len__(self) -> int:
        return len(self.loader)

    def state_dict(self) -> Any:
        """Returns the loader's state as of the batch that was delivered last, not of those that were read ahead. When the loop has ended, it is that of the end."""
        if not hasattr(self.loader, "state_dict"):
            raise TypeError(f"the loader, a {type(self.loader).__name__}, has no state_dict")
        return self._delivered if self._delivered is not None else self.loader.state_dict()

    def load_state_dict(self, state: Any) -> None:
        """Has the loader go on after the batch that was delivered last when the state was made."""
        self.loader.load_state_dict(state)
        self._delivered = None

    def __iter__(self) -> Iterator[Any]:
        worker = self._worker if self._worker is not None else cluster().worker
        has_state = hasattr(self.loader, "state_dict")
        read: deque[tuple[Any, Any]] = deque()
        batches = iter(self.loader)
        depth, more, failed = 2, True, None
        try:
            while True:
                while more and len(read) < depth:
                    try:
                        batch = next(batches, _END)
                        if batch is _END:
                            more = False
                            break
                        self._announce(worker, batch, worker.clock + len(read))
                    except Exception as e:  # what was read before comes first, as without reading ahead
                        more, failed = False, e
                        break
                    read.append((batch, self.loader.state_dict() if has_state else None))
                if not read:
                    if failed is not None:
                        raise failed
                    self._delivered = None  # from here on the loader's own state counts
                    return
                batch, self._delivered = read[0]
                began = time.monotonic()
                yield batch
                step = time.monotonic() - began
                worker.advance()
                read.popleft()
                depth = self._depth(depth, step)
        finally:
            for _ in range(len(read)):  # what was announced ends with its clock
                worker.advance()

    def _announce(self, worker: Worker, batch: Any, at: int) -> None:
        announced = self.keys(batch)
        pairs = announced.items() if hasattr(announced, "items") else announced
        if not isinstance(pairs, Iterable) or _buffers.is_tensor(pairs):
            raise TypeError(f"keys of lookahead returned a {type(announced).__name__}, want a dict from modules or tables to rows")
        for pair in pairs:
            try:
                table, rows = pair
            except (TypeError, ValueError):
                raise TypeError(f"keys of lookahead returned a {type(announced).__name__} with a {type(pair).__name__} in it, want a dict from modules or tables to rows") from None
            table = getattr(table, "table", table)  # a module's
            if not isinstance(table, Table):
                raise TypeError(f"keys of lookahead returned rows of a {type(table).__name__}, want a module of godwit.nn or a table")
            worker.intent(table, rows, at, at + 1)

    @staticmethod
    def _depth(depth: int, step: float) -> int:
        """Returns how many batches to hold: as many as take AHEAD, changing by one a step."""
        want = min(MOST, max(2, round(AHEAD / max(step, 1e-4))))
        return depth + (want > depth) - (want < depth)


def lookahead(loader: Any, keys: Callable[[Any], Any], worker: Worker | None = None) -> Lookahead:
    """Reads batches ahead and announces their rows, so that these are here when they are used.

    ``keys`` returns, for a batch, a dict from modules or tables to the rows that the batch uses, or pairs of the two.
    For each batch that was used, the worker's clock advances by one. How many batches are read ahead follows from how
    long a step takes. If the loader or ``keys`` fails, or a row cannot be announced, the batches before come first. When the loop is left early,
    what was announced is withdrawn, by letting its clocks pass.
    """
    return Lookahead(loader, keys, worker)
