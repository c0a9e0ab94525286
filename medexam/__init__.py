"""Declarative LLM programs for medical exams, built on DSPy."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from medexam.errors import MedExamError
    from medexam.experiments.api.evaluations import Evaluate
    from medexam.experiments.api.optimizations import optimize
    from medexam.experiments.api.programs import build_program, lm
    from medexam.experiments.api.questions import exam_metric, load_questions
    from medexam.experiments.api.runs import compare, list_runs, load_run, plan, report, run
    from medexam.experiments.run.spending import Limits
    from medexam.plugins import __version__
    from medexam.predictions import Prediction
    from medexam.questions import Question

__all__ = [
    "Evaluate",
    "Limits",
    "MedExamError",
    "Prediction",
    "Question",
    "__version__",
    "build_program",
    "compare",
    "exam_metric",
    "list_runs",
    "lm",
    "load_questions",
    "load_run",
    "optimize",
    "plan",
    "report",
    "run",
]
_HOMES = {
    **dict.fromkeys(("run", "plan", "load_run", "list_runs", "compare", "report"), "experiments.api.runs"),
    **dict.fromkeys(("load_questions", "exam_metric"), "experiments.api.questions"),
    **dict.fromkeys(("build_program", "lm"), "experiments.api.programs"),
    "Evaluate": "experiments.api.evaluations",
    "optimize": "experiments.api.optimizations",
    "Limits": "experiments.run.spending",
    "MedExamError": "errors",
    "Prediction": "predictions",
    "Question": "questions",
    "__version__": "plugins",
}


if not TYPE_CHECKING:  # A type checker would believe every name that `__getattr__` is asked for.

    def __getattr__(name: str) -> Any:
        """Load a name when it is first used: most need DSPy, and the command line starts without it."""
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        return value


def __dir__() -> list[str]:
    return __all__
