"""A whole experiment: data set, model, program, and the matrix that varies them."""

from typing import Annotated, Any, Self

from pydantic import Field, StringConstraints, model_validator

from medexam.errors import SpecError
from medexam.specs.base import Spec
from medexam.specs.dataset import DatasetSpec
from medexam.specs.model import ModelSpec
from medexam.specs.names import OWN_METRICS, part_of, short_name
from medexam.specs.optimizer import OptimizerSpec
from medexam.specs.programs.kinds import KINDS, AnyProgram
from medexam.specs.programs.words import TASKS
from medexam.specs.validation import PlacedError

ModelName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,31}$")]
ExperimentName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]


def is_entry(entry: str, name: str) -> bool:
    """Return whether the scores called `entry` are of the metric that a spec names so, or of one entry of its
    mapping.
    """
    called = short_name(name)
    return entry == called or entry.startswith(f"{called}.")


class CellSpec(Spec):
    """One run: a data set, a model and a program, nothing left to vary."""

    name: ExperimentName
    """The experiment's name; runs and the MLflow experiment carry it."""
    dataset: DatasetSpec = DatasetSpec()
    model: ModelSpec = ModelSpec()
    models: dict[ModelName, ModelSpec] = Field(default_factory=dict)
    """Further models by name, which steps of a program ask by `model`."""
    program: AnyProgram = KINDS["zero_shot"](kind="zero_shot")
    metrics: tuple[Annotated[str, part_of(OWN_METRICS)], ...] = ()
    """Metrics of the user's own beside the benchmark's: `./file.py:name`, `package.module:name`, or a name that an
    installed package adds. Each is a function of question, gold and prediction; no answer depends on it."""
    trace_questions: Annotated[int, Field(ge=0, le=100)] = 20
    """How many questions at most get a trace in MLflow, always the same ones; no answer depends on it."""

    @model_validator(mode="after")
    def _parts_are_named(self) -> Self:
        names = [short_name(name) for name in self.metrics]
        if duplicate := next((name for name in names if names.count(name) > 1), None):
            raise PlacedError("metrics", f"two metrics are called {duplicate}: rename one function")
        if unknown := [name for name in self.program.asking.models if name not in self.models]:
            raise PlacedError(
                "program",
                f"its steps ask model {', '.join(unknown)}, and models has {', '.join(self.models) or 'none'}",
            )
        return self

    @property
    def asked_models(self) -> dict[str, ModelSpec]:
        """Those of the further models that the program asks, by name."""
        return {name: self.models[name] for name in self.program.asking.models if name in self.models}

    def check_fit(self) -> None:
        """Raise `SpecError` where its program cannot answer its data set."""
        form, program = self.dataset.question_form, self.program
        for model in (self.model, *self.asked_models.values()) if self.asked_models else ():
            if model.ask_engine("works_in_folder"):
                raise SpecError(f"engine {model.engine!r} works with one model only: use another engine")
        asking = program.asking
        if asking.draws and not self.model.temperature:
            raise SpecError(
                f"program {program.label} asks each question several times, and at temperature 0 all replies are "
                "equal: set model.temperature, such as 0.7"
            )
        if self.dataset.is_own or form == "examples":
            return
        name = self.dataset.kind or self.dataset.name
        if asking.votes and form != "choice":
            raise SpecError(
                f"program {program.label} lets answers vote, and the questions of {name} have no numbered options: "
                "leave samples, orders and combine out"
            )
        if asking.forms is not None and form not in asking.forms:
            kinds = [kind for kind, (answered, *_) in TASKS.items() if form == answered]
            raise SpecError(
                f"program {program.kind} does not answer {name}{'' if kinds else ', an exam'}: set program.kind to "
                f"{' or '.join(kinds) or 'zero_shot'}, or ask a data set of the form {' or '.join(asking.forms)}"
            )


class ExperimentSpec(CellSpec):
    """What the user wrote. `medexam.specs.matrix` turns it into cells."""

    description: str = ""
    """Shown in MLflow and above the table."""
    optimizer: OptimizerSpec | None = None
    """How `medexam optimize` improves the program; None: the spec is only run."""
    matrix: dict[str, Annotated[list[Any], Field(min_length=1)]] = Field(default_factory=dict)
    """Dotted key of the spec -> the values it takes; every combination is a cell. A value replaces the
    key's own: a program in the matrix takes nothing from the `program` beside it. The key `cells` takes mappings of
    dotted keys to values, which change together."""
