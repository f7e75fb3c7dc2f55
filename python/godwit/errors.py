"""What calls of Godwit raise. All errors are a :class:`GodwitError`, and the built-in one that fits."""


class GodwitError(RuntimeError):
    """A call of Godwit failed; the text says which, on what, and why."""


class ArgumentError(GodwitError, ValueError):
    """An argument cannot be."""


class RowError(GodwitError, IndexError):
    """A row does not exist."""


class LengthError(ArgumentError):
    """A buffer has the wrong length."""


class ClosedError(GodwitError):
    """The cluster, worker or operation was closed."""


class NodeLostError(GodwitError, ConnectionError):
    """Another node of the run, or who coordinates it, was lost or never came, which ends the run at all nodes."""


class OutOfMemoryError(GodwitError, MemoryError):
    """The system has no memory left for rows."""


class BusyError(GodwitError):
    """Another thread uses the worker, or an operation that was not waited for."""


class FullError(GodwitError):
    """A bounded queue, such as of what is announced, has no room: the text says what to wait for."""


class CancelledError(GodwitError):
    """An operation was cancelled, or its time was over."""


class ForkError(GodwitError):
    """A forked child of a process with a cluster used it."""
