"""What a module of the user's own raised, or where it blocks, told as the failure of its question.

The failure says where, what, and the whole traceback. A question whose reply did not parse did not fail: asking again
would not change it.
"""

import asyncio
import sys
import sysconfig
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import copy_context
from pathlib import Path
from types import FrameType
from typing import Any

from dspy.utils.exceptions import AdapterParseError, LMError

from medexam.errors import ProgramFaultError
from medexam.programs.lm import OtherModelError

_NO_MODEL = "No LM is loaded"
"""How DSPy's complaint begins in a thread of the user's own, which does not have the settings of the one before."""
_THREAD = (
    "the module asks in a thread of its own, which does not know the run's model: start it by dspy.Parallel, or call "
    "contextvars.copy_context().run in it"
)
_INSTALLED = tuple({sysconfig.get_path(kind) for kind in ("stdlib", "purelib", "platlib")})
_OURS = {"medexam", "dspy"}


@contextmanager
def naming_faults(code: object) -> Iterator[list[Any]]:
    """Take what the code, a module or a function, returned; it stays empty where a reply did not parse.

    Raises `ProgramFaultError` for whatever the user's code raises, but faults of models as they are.
    """
    try:
        yield []
    except (LMError, ProgramFaultError):
        raise
    except AdapterParseError:
        pass
    except (Exception, OtherModelError) as error:
        kind, text = type(error).__name__, str(error)
        message = f"{kind}: {_THREAD} ({text})" if text.startswith(_NO_MODEL) else f"{kind}: {text}"
        place = own_place(error, code.__module__)
        trace = "".join(traceback.format_exception(error))
        raise ProgramFaultError(kind, f"{place}: {message}" if place else message.partition(": ")[2], trace) from error


async def call_in_time(call: Callable[[], Any], timeout_s: float, module: type) -> Any:
    """Return what `call` returns in a thread; raises `ProgramFaultError`, with its place, if it takes too long.

    The thread ends with the process: one of a pool would be waited for then, however long it blocks.
    """
    returned: Future[Any] = Future()
    returned.set_running_or_notify_cancel()  # a caller that waits no longer does not stop it

    def run() -> None:
        try:
            returned.set_result(call())
        except BaseException as error:
            returned.set_exception(error)

    thread = threading.Thread(target=copy_context().run, args=(run,), name="medexam-question", daemon=True)
    thread.start()
    future = asyncio.wrap_future(returned)
    if (await asyncio.wait([future], timeout=timeout_s))[0]:
        return future.result()
    frame = sys._current_frames().get(thread.ident or 0)
    place = _last_own_place([*traceback.walk_stack(frame)][::-1] if frame else [], module.__module__)
    message = f"it took more than program.timeout_s, {timeout_s:g} s"
    trace = "".join(traceback.format_stack(frame)) if frame else None
    raise ProgramFaultError("TimeoutError", f"{place}: {message}" if place else message, trace)


def own_place(error: BaseException, module: str) -> str | None:
    """Return file, line and function of the last frame in the user's code; None if none is."""
    return _last_own_place(traceback.walk_tb(error.__traceback__), module)


def _last_own_place(frames: Iterable[tuple[FrameType, int]], module: str) -> str | None:
    """Return the last place among frames, outermost first, that is the user's: of the module's top package, or of no
    installed one.
    """
    place, package = None, module.partition(".")[0]
    for frame, line in frames:
        file, owner = frame.f_code.co_filename, frame.f_globals.get("__name__", "").partition(".")[0]
        is_foreign = owner in _OURS or file.startswith(("<", *_INSTALLED))
        if not is_foreign or (owner == package and owner not in _OURS):
            place = f"{Path(file).name}:{line} in {frame.f_code.co_name}"
    return place
