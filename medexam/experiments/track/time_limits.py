"""A limit to the time that MLflow may take: a run is on the disk, and waits for no store that hangs.

A server may accept a connection and never answer, or answer a byte at a time; a database may be locked. Libraries limit
single reads at most. Here each call runs in a thread of its own, which is left to itself when its time is over.
"""

import contextvars
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any


@dataclass
class StoreTimes:
    """Seconds that MLflow may take."""

    call_s: float = 30.0
    """For a call; one that sends files may take another second for each megabyte."""
    send_s: float = 600.0
    """For all calls between opening a store and leaving it together, beside what files add."""


STORE_TIMES = StoreTimes()
_BYTES_PER_S = 1e6
_UPLOADS = {"log_artifact": 1, "log_model_artifacts": 1}
"""Methods that send files -> the place of the path among their arguments."""


class TimeLimits:
    """The time left for one visit of a store, which begins now."""

    def __init__(self) -> None:
        """Start the time."""
        self._end = time.monotonic() + STORE_TIMES.send_s

    def bound(self, client: object) -> Any:
        """Wrap `client` with a limit to the time that each of its methods takes."""
        return _Bound(client, self)

    def call(self, function: Callable[..., Any], *arguments: Any, extra_s: float = 0.0, **options: Any) -> Any:
        """Return or raise what the function returns or raises; `TimeoutError` where it takes longer than is left."""
        self._end += extra_s
        limit = min(STORE_TIMES.call_s + extra_s, self._end - time.monotonic())
        if limit <= 0:
            raise TimeoutError(f"all calls together took longer than {STORE_TIMES.send_s:g} s")
        outcomes: list[tuple[Any, BaseException | None]] = []

        def work() -> None:
            try:
                outcomes.append((function(*arguments, **options), None))
            except BaseException as error:
                outcomes.append((None, error))

        # A daemon: the process must be able to end while the call hangs, so an executor will not do.
        thread = Thread(target=contextvars.copy_context().run, args=(work,), name="mlflow", daemon=True)
        thread.start()
        thread.join(limit)
        if not outcomes:
            raise TimeoutError(f"no answer within {limit:.3g} s")
        result, error = outcomes[0]
        if error is not None:
            raise error
        return result


class _Bound:
    """A client of MLflow's, with a limit to the time of each call."""

    def __init__(self, client: object, limits: TimeLimits) -> None:
        self.unbound = client
        self.limits = limits

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.unbound, name)

        def call(*arguments: Any, **options: Any) -> Any:
            extra_s = _size(arguments[_UPLOADS[name]]) / _BYTES_PER_S if name in _UPLOADS else 0.0
            return self.limits.call(method, *arguments, extra_s=extra_s, **options)

        return call


def _size(path: str) -> int:
    """Count the bytes of a file, or of all files below a folder."""
    place = Path(path)
    files = (file for file in place.rglob("*") if file.is_file()) if place.is_dir() else (place,)
    return sum(file.stat().st_size for file in files)
