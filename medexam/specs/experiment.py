"""A whole experiment: data set, model, program, the matrix that varies them, and the optimizer."""

from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from medexam.errors import SpecError
from medexam.specs.base import NAME, OPTIMIZERS, OWN_METRICS, PlacedError, Spec, class_name, part_of, short_name
from medexam.specs.dataset import DatasetSpec, PartSpec
from medexam.specs.model import ModelSpec
from medexam.specs.programs.kinds import KINDS, AnyProgram
from medexam.specs.programs.needs import Metric, OptimizerKind, PositiveInt
from medexam.specs.programs.words import WORDS


class OptimizerSpec(Spec):
    """Which of DSPy's optimizers, on which exams, and how much it may ask."""

    kind: Annotated[str, AfterValidator(class_name), part_of(OPTIMIZERS, OptimizerKind)]
    """`labeled`: demonstrations drawn from the training questions. `knn`: those nearest to each question. `bootstrap`:
    replies of the model that led to the right answer. `random_search`: several bootstrapped sets, the best of which is
    kept. `mipro` chooses sets and instructions, `copro` and `gepa` instructions alone. Any other optimizer of DSPy's or
    one's own is named by its class, such as `dspy.SIMBA`."""
    args: dict[str, Any] = Field(default_factory=dict)
    """Keyword arguments of a class, beside `trainset`, `valset`, `metric` and models, which medexam sets."""
    train: PartSpec = PartSpec(split="train")
    """Where demonstrations come from."""
    validation: PartSpec = PartSpec(split="dev")
    """The questions that candidates are chosen by."""
    metric: Annotated[str, part_of(OWN_METRICS, Metric)] = "accuracy"
    """What candidates are chosen by: the share of right answers; `exam_score`, by `dataset.scoring`, else a third off
    for a wrong one; `log_probability`, the mean of the right option among the options, in nats, where answers are
    guided; or a function `./file.py:name`, as in `metrics`; it may return a mapping with `score` and `feedback`."""
    demos: PositiveInt = 3
    """Demonstrations that a prompt may show; the paper's 3."""
    candidates: Annotated[int, Field(ge=2)] = 8
    """Programs that are tried, the one as written included; for `copro` the instructions that are tried in a round."""
    rounds: PositiveInt = 2
    """`copro`: how often instructions are proposed anew from those tried before."""
    attempts: PositiveInt = 24
    """Training questions that a candidate may try for demonstrations of its own."""
    seed: int = 0
    """Chooses demonstrations and the order of what is tried."""
    encoder: str = "minilm"
    """`knn`: what measures nearness, as `retriever.encoder`."""
    prompt_model: ModelSpec | None = None
    """`mipro`, `gepa`, `copro` and classes: the model that writes instructions; None is the model that answers."""
    max_calls: PositiveInt | None = None
    """Calls of the models, at most; None sets no limit."""
    max_tokens: PositiveInt | None = None
    """Tokens read and written by the models, at most; None sets no limit."""

    @property
    def is_class(self) -> bool:
        """Whether it is named by its class."""
        return ":" in self.kind

    @property
    def writes_instructions(self) -> bool:
        """Whether a model writes instructions."""
        return self.is_class or self.kind in ("mipro", "copro", "gepa")

    @property
    def programs(self) -> int:
        """Programs that are tried in a round, the one as written included; of a class the fewest."""
        return 2 if self.is_class or self.kind in ("labeled", "knn", "bootstrap") else self.candidates


def is_entry(entry: str, name: str) -> bool:
    """Return whether the scores called `entry` are of the metric that a spec names so, or of one entry of its
    mapping.
    """
    return f"{entry}.".startswith(f"{short_name(name)}.")


class CellSpec(Spec):
    """One run: a data set, a model and a program, nothing left to vary."""

    name: Annotated[str, StringConstraints(pattern=NAME)]
    """The experiment's name; runs and the MLflow experiment carry it."""
    dataset: DatasetSpec = DatasetSpec()
    model: ModelSpec = ModelSpec()
    models: dict[Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,31}$")], ModelSpec] = Field(
        default_factory=dict
    )
    """Further models by name, which steps of a program ask by `model`."""
    program: AnyProgram = KINDS["zero_shot"](kind="zero_shot")
    metrics: tuple[Annotated[str, part_of(OWN_METRICS)], ...] = ()
    """Functions of question, gold and prediction, `./file.py:name`, that score too; no answer depends on them."""
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
        return {name: self.models[name] for name in self.program.asking.models}

    def check_fit(self) -> None:
        """Raise `SpecError` where its program cannot answer its data set."""
        form, program = self.dataset.question_form, self.program
        for model in (self.model, *self.asked_models.values()) if self.asked_models else ():
            if model.ask_engine("works_in_folder"):
                raise SpecError(f"engine {model.engine!r} works with one model only: use another engine")
        asking = program.asking
        for name in asking.draws:
            if not (self.models[name] if name else self.model).temperature:
                raise SpecError(
                    f"program {program.label} asks each question several times, and at temperature 0 all replies are "
                    f"equal: set {f'models.{name}' if name else 'model'}.temperature, such as 0.7"
                )
        forms = (form,) if asking.forms is None else asking.forms
        if form not in (*forms, "examples") and not self.dataset.is_own:
            kinds = [kind for kind, words in WORDS.items() if (words["asks"], words["form"]) == ("task", form)]
            raise SpecError(
                f"program {program.kind}{', whose answers vote,' * asking.votes} does not answer "
                f"{self.dataset.kind or self.dataset.name}{'' if kinds else ', an exam'}: set program.kind to "
                f"{' or '.join(kinds) or 'zero_shot'}, or ask a data set of the form {' or '.join(forms)}"
            )


class ExperimentSpec(CellSpec):
    """What the user wrote. `medexam.specs.matrix` turns it into cells."""

    description: str = ""
    """Shown in MLflow and above the table."""
    optimizer: OptimizerSpec | None = None
    """How `medexam optimize` improves the program; None: the spec is only run."""
    matrix: dict[str, Annotated[list[Any], Field(min_length=1)]] = Field(default_factory=dict)
    """Dotted key -> the values it takes, each in the place of the key's own; every combination is a cell. The key
    `cells` takes mappings of dotted keys to values, which change together."""
