"""How a program is improved: the `optimizer` part of a spec, which `medexam optimize` reads."""

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from medexam.specs.base import Spec
from medexam.specs.dataset import PartSpec
from medexam.specs.model import ModelSpec
from medexam.specs.names import OWN_METRICS, class_name, part_of

OptimizerKind = Literal["labeled", "knn", "bootstrap", "random_search", "mipro", "gepa", "copro"]
Metric = Literal["accuracy", "exam_score", "log_probability"]
Count = Annotated[int, Field(ge=1)]
OPTIMIZERS = "medexam.optimizers"
"""The entry point group of short names for optimizers."""


class OptimizerSpec(Spec):
    """Which of DSPy's optimizers, on which exams, and how much it may ask."""

    kind: Annotated[str, AfterValidator(class_name), part_of(OPTIMIZERS, OptimizerKind)]
    """`labeled`: demonstrations drawn from the training questions. `knn`: those nearest to each question. `bootstrap`:
    replies of the model that led to the right answer. `random_search`: several bootstrapped sets, the best of which is
    kept. `mipro` chooses sets and instructions, `copro` and `gepa` instructions alone. Any other optimizer of DSPy's or
    one's own is named by its class, such as `dspy.SIMBA`."""
    args: dict[str, Any] = Field(default_factory=dict)
    """Keyword arguments of a class; `trainset`, `valset`, `metric` and models that write instructions are set by
    medexam."""
    train: PartSpec = PartSpec(split="train")
    """Where demonstrations come from."""
    validation: PartSpec = PartSpec(split="dev")
    """The questions that candidates are chosen by."""
    metric: Annotated[str, part_of(OWN_METRICS, Metric)] = "accuracy"
    """What candidates are chosen by: the share of right answers; the exam's score, in which three wrong answers
    cancel a right one; or the mean log-probability of the right option among the options, in nats, which differs
    even between programs with the same answers. The last needs `answer_format: guided`. `./file.py:name` is a
    function of one's own of question, gold and prediction, as in `metrics`; it may return a mapping with `score`
    and, for optimizers that reflect, `feedback`."""
    demos: Count = 3
    """Demonstrations that a prompt may show; the paper's 3."""
    candidates: Annotated[int, Field(ge=2)] = 8
    """Programs that are tried, the one as written included; for `copro` the instructions that are tried in a round."""
    rounds: Count = 2
    """`copro`: how often instructions are proposed anew from those tried before."""
    attempts: Count = 24
    """Training questions that a candidate may try for demonstrations of its own."""
    seed: int = 0
    """Chooses demonstrations and the order of what is tried."""
    encoder: str = "minilm"
    """`knn`: what measures nearness, as `retriever.encoder`."""
    prompt_model: ModelSpec | None = None
    """`mipro`, `gepa`, `copro` and classes: the model that writes instructions; None is the model that answers."""
    max_calls: Count | None = None
    """Calls of the models, at most; None sets no limit."""
    max_tokens: Count | None = None
    """Tokens read and written by the models, at most; None sets no limit."""

    @model_validator(mode="after")
    def _arguments_are_of_a_class(self) -> Self:
        if self.args and not self.is_class:
            raise ValueError(
                f"args belong to a kind that is a class, such as dspy.SIMBA; {self.kind} has its own fields"
            )
        return self

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
