"""Models of DSPy's whose calls an evaluation counts, wherever a module makes them: at the model itself."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, cast

import dspy
from dspy.utils.usage_tracker import UsageTracker

from medexam.predictions.calls import ModelCall
from medexam.programs.kept import keep_call
from medexam.programs.lm import EngineLM

Stray = Callable[[ModelCall], object]
"""What hears of a call that belongs to no example, such as one in a thread of the user's own."""


@contextmanager
def counted_calls(models: Iterable[Any], stray: Stray) -> Iterator[None]:
    """Have every call of these models kept for its example while the block runs; engines of ours keep theirs anyway.

    A reply from DSPy's cache is no call.
    """
    kinds = {id(lm): (lm, type(lm)) for lm in models if isinstance(lm, dspy.BaseLM) and not isinstance(lm, EngineLM)}
    for lm, kind in kinds.values():
        # The object itself: threads of the user's own, which know nothing of this block, hold the same one.
        lm.__class__ = _counted(cast("Any", kind))
        vars(lm)[_STRAY] = stray
    try:
        yield
    finally:
        for lm, kind in kinds.values():
            lm.__class__ = kind
            vars(lm).pop(_STRAY, None)


_STRAY = "_medexam_stray"


@cache
def _counted(kind: Any) -> type:
    """Return a class of models that tells of each call, and is the same in all else."""

    def call(self: Any, *arguments: Any, **options: Any) -> Any:
        with _telling(self):
            return kind.__call__(self, *arguments, **options)

    async def acall(self: Any, *arguments: Any, **options: Any) -> Any:
        with _telling(self):
            return await kind.acall(self, *arguments, **options)

    names = {"__module__": kind.__module__, "__qualname__": kind.__qualname__, "__call__": call, "acall": acall}
    return type(kind.__name__, (kind,), names)


def _telling(lm: Any) -> Any:
    """Return a context in which the usage that DSPy counts of one call is told to who keeps calls."""
    return dspy.context(usage_tracker=_Usage(dspy.settings.usage_tracker, vars(lm).get(_STRAY, _nobody)))


def _nobody(_: ModelCall) -> None:
    """Hear of nothing."""


class _Usage(UsageTracker):
    """The usage of one call, told on to the tracker of the script as well."""

    def __init__(self, outer: UsageTracker | None, stray: Stray) -> None:
        super().__init__()
        self._outer = outer
        self._stray = stray

    def add_usage(self, lm: str, usage_entry: dict[str, Any]) -> None:
        """Keep a call, of which a model need not report anything."""
        if self._outer is not None:
            self._outer.add_usage(lm, usage_entry)
        prompt, completion = usage_entry.get("prompt_tokens"), usage_entry.get("completion_tokens")
        call = ModelCall(model=lm, finish_reason="stop", prompt_tokens=prompt, completion_tokens=completion)
        if not keep_call(call):
            self._stray(call)
