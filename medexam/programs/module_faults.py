"""What a module of the user's own raised, told as the failure of its question: where, what, and the whole traceback.

A question whose reply did not parse did not fail: asking again would not change it.
"""

import sysconfig
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dspy
from dspy.utils.exceptions import AdapterParseError, LMError

from medexam.errors import ProgramFaultError
from medexam.programs.recording import OtherModelError

_NO_MODEL = "No LM is loaded"
"""How DSPy's complaint begins in a thread of the user's own, which does not have the settings of the one before."""
_THREAD = (
    "the module asks in a thread of its own, which does not know the run's model: start it by dspy.Parallel, or call "
    "contextvars.copy_context().run in it"
)
_INSTALLED = tuple({sysconfig.get_path(kind) for kind in ("stdlib", "purelib", "platlib")})
_OURS = {"medexam", "dspy"}


@contextmanager
def naming_faults(module: dspy.Module) -> Iterator[list[Any]]:
    """Take what the module returned; it stays empty where a reply did not parse.

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
        message = f"{_THREAD} ({text})" if text.startswith(_NO_MODEL) else text
        place = _own_place(error, _package(type(module).__module__))
        raise ProgramFaultError(
            kind, f"{place}: {kind}: {message}" if place else message, "".join(traceback.format_exception(error))
        ) from error


def _own_place(error: BaseException, package: str) -> str | None:
    """Return file, line and function of the last frame in the user's code; None if none is.

    It is the user's if it belongs to the module's top package, or is of no installed one.
    """
    place = None
    for frame, line in traceback.walk_tb(error.__traceback__):
        file, owner = frame.f_code.co_filename, _package(frame.f_globals.get("__name__", ""))
        is_foreign = owner in _OURS or file.startswith(("<", *_INSTALLED))
        if not is_foreign or (owner == package and owner not in _OURS):
            place = f"{Path(file).name}:{line} in {frame.f_code.co_name}"
    return place


def _package(module: str) -> str:
    return module.partition(".")[0]
