"""Questions, programs and models in Python, as DSPy takes them."""

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

from medexam.errors import SpecError
from medexam.experiments.report.shown import Block, Displayed
from medexam.measures import find_benchmark
from medexam.questions import AnySet, Language, Question
from medexam.specs import CellSpec, DatasetSpec, EngineNeeds, ModelSpec, ProgramSpec
from medexam.specs.base import validate
from medexam.specs.dataset import check_named
from medexam.tables import Table

if TYPE_CHECKING:
    import dspy
    import pandas as pd

    from medexam.programs.base import EngineLM

SHOWN = 5
"""Questions that are shown of a set."""


class Questions(Displayed, tuple[Question, ...]):
    """The questions of a data set, with what is expected kept apart. They show themselves as a table."""

    items: AnySet
    """The whole of what was read: source, version, licence, citation, questions and golds."""
    spec: DatasetSpec
    """Which questions were asked for."""

    def __new__(cls, items: AnySet, spec: DatasetSpec) -> Self:
        """Hold what was read under a spec."""
        questions = super().__new__(cls, cast("Any", items.questions))
        questions.items, questions.spec = items, spec
        return questions

    @cached_property
    def answers(self) -> Mapping[str, Any]:
        """Key of a question -> the printed number of its right option; its right texts if it is answered in words."""
        golds = {question.key: self.items.golds[question.key] for question in self}
        return {key: getattr(gold, "number", None) or gold.answers for key, gold in golds.items()}

    def examples(self, *, as_text: bool = False) -> "list[dspy.Example]":
        """Build one `dspy.Example` a question: input `question`, and `answer` as `answers` has it.

        With `as_text` the input is the printed text, the stem and its numbered options, for signatures such as
        `question -> answer: int`; else it is the `Question`, as medexam's own programs take it.
        """
        import dspy

        return [
            dspy.Example(
                question=question.printed if as_text and isinstance(question, Question) else question,
                answer=self.answers[question.key],
            ).with_inputs("question")
            for question in self
        ]

    def to_pandas(self) -> "pd.DataFrame":
        """Build one row a question, in their order: `key`, the words that are shown, and `answer`."""
        import pandas as pd

        benchmark, golds = find_benchmark(self.spec), self.items.golds
        rows = [
            {"key": question.key, **benchmark.place(question), **benchmark.wording(question, golds[question.key])}
            for question in self
        ]
        return pd.DataFrame(rows).assign(answer=list(self.answers.values()))

    def blocks(self) -> list[Block]:
        """Show how many there are and of what, and the first of them."""
        items = self.items
        texts = [getattr(one, "printed", None) or cast("Any", one).question for one in self[:SHOWN]]
        rows = tuple((key, text, str(answer)) for (key, answer), text in zip(self.answers.items(), texts, strict=False))
        title = f"{items.name} {items.language}: {len(self):,} questions"
        table = Table(title, ("Key", "Question", "Answer"), rows, text_columns=3)
        remainder = [f"and {len(self) - SHOWN:,} more"] if len(self) > SHOWN else []
        return [table, *remainder, f"Read from {items.source}"]


def load_questions(dataset: str | Path | Mapping[str, Any] | DatasetSpec | None = None, **selection: Any) -> Questions:
    """Load the questions of a data set, by its name, a file of one's own, or the `dataset` part of a spec.

    `selection` are fields of `DatasetSpec`: `language="es"`, `years=2016`, `disciplines="medicine"`, `limit=100`. A
    file's `kind` is `choice` unless it is given. None is the sample that ships, or what the fields say. Raises
    `DatasetError` if the files are missing or unsound, or nothing is selected, and `SpecError` for a field that does
    not exist and for a part that names no data set.
    """
    fields: dict[str, Any] = {}
    if isinstance(dataset, DatasetSpec):
        fields = dataset.model_dump(exclude_unset=True)
    elif isinstance(dataset, Mapping):
        fields = dict(dataset)
    elif dataset is not None:
        is_file = Path(dataset).suffix and Path(dataset).is_file()
        fields = {"kind": "choice", "path": dataset} if is_file else {"name": str(dataset)}
    spec = validate(DatasetSpec, {**fields, **selection})
    if isinstance(dataset, Mapping):
        check_named({**fields, **selection})
    return Questions(find_benchmark(spec).load(spec), spec)


def exam_metric(
    example: Any,
    prediction: Any,
    trace: Any = None,  # noqa: ARG001
    pred_name: str | None = None,  # noqa: ARG001
    pred_trace: Any = None,  # noqa: ARG001
) -> float:
    """Score 1.0 if the prediction's answer is the example's, else 0.0, for `dspy.Evaluate` and DSPy's optimizers.

    An answer is an option's number. If the example holds a `Question`, its letter and its text are read too, as runs
    read them.
    """
    from medexam.signatures.choices import read_choice

    answer, question = getattr(prediction, "answer", None), example.get("question")
    if isinstance(question, Question):
        answer = read_choice(answer, question)
    elif isinstance(answer, str):
        number = answer.strip(" .:()[]{}\n")
        answer = int(number) if number.isdecimal() else answer
    return float(answer == example.answer)


def build_program(
    program: "str | Mapping[str, Any] | ProgramSpec | dspy.Module" = "zero_shot",
    *,
    language: Language = "en",
    **settings: Any,
) -> "dspy.Module":
    """Build a strategy as a DSPy module, called with `question=`, a `Question`; `answer` is an option's number or None.

    `program` may be a module of your own, which is called with what its `forward` takes of a question.
    `settings` are fields of the program's spec, such as `answer_format="guided"`. The model is the one of
    `dspy.configure`. Raises `SpecError` for a setting that does not exist, and for a program that looks up passages:
    `run` carries those out.
    """
    from medexam.experiments.evaluate.identity import program_part
    from medexam.programs import build_program as build_module

    if isinstance(program, ProgramSpec):
        fields = program.model_dump()
    elif isinstance(program, str):
        fields = {"kind": program}
    else:
        fields = dict(program) if isinstance(program, Mapping) else program_part(program)
    cell = validate(CellSpec, {"name": "program", "program": {**fields, **settings}})
    try:
        return build_module(cell.program, language)
    except ValueError as error:
        raise SpecError(f"program {cell.program.kind}: {error}; `medexam.run` carries it out") from None


def lm(model: str | Mapping[str, Any] | ModelSpec = "embedded", **settings: Any) -> "EngineLM":
    """Build a model as a `dspy.LM`, ready for `dspy.configure(lm=...)`, with `choose` and `score` beside it.

    `model` is an engine's name (`embedded`, `vllm`, `litellm`, `scripted`) or the `model` part of a spec, `settings`
    are its fields: `medexam.lm("vllm", endpoints="http://gpu1:8000/v1", temperature=0.7)`. Equal requests at a
    temperature above 0 are drawn one after the other: the first under the model's seed, each other under the next one.
    Raises `EngineError` if it cannot be loaded or reached.
    """
    from medexam.process import background_loop
    from medexam.programs.base import build_lm
    from medexam.serve import build_engine

    part = model.model_dump(exclude_unset=True) if isinstance(model, ModelSpec) else model
    fields = {"engine": part} if isinstance(part, str) else dict(part)
    spec = validate(ModelSpec, {**fields, **settings})
    return build_lm(spec, background_loop().run(build_engine(spec, EngineNeeds(tools=True))), draws=True)
