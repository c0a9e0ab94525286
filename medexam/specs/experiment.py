"""A whole experiment: data set, model, program, and the matrix that varies them."""

from typing import Annotated, Any

from pydantic import Field, StringConstraints, field_validator

from medexam.specs.base import Spec
from medexam.specs.dataset import DatasetSpec
from medexam.specs.model import ModelSpec
from medexam.specs.names import OWN_METRICS, part_name, short_name
from medexam.specs.optimizer import OptimizerSpec
from medexam.specs.programs.kinds import AnyProgram
from medexam.specs.programs.replies import ZeroShotSpec
from medexam.specs.stopping import StopSpec

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
    program: AnyProgram = ZeroShotSpec(kind="zero_shot")
    metrics: tuple[str, ...] = ()
    """Metrics of the user's own beside the benchmark's: `./file.py:name`, `package.module:name`, or a name that an
    installed package adds. Each is a function of question, gold and prediction; no answer depends on it."""
    trace_questions: Annotated[int, Field(ge=0, le=1000)] = 3
    """Questions that MLflow also gets a complete trace of, always the same ones; no answer depends on it."""

    @field_validator("metrics")
    @classmethod
    def _name_code(cls, metrics: tuple[str, ...]) -> tuple[str, ...]:
        full_names = tuple(part_name(name, (), OWN_METRICS) for name in metrics)
        short_names = [short_name(name) for name in full_names]
        if duplicate := next((name for name in short_names if short_names.count(name) > 1), None):
            raise ValueError(f"two metrics are called {duplicate}: rename one function")
        return full_names

    @property
    def members(self) -> tuple["CellSpec", ...]:
        """The runs that an ensemble is made of, on the same questions; empty for any other program."""
        return tuple(
            self.model_copy(update={"program": member.program, "model": member.model or self.model})
            for member in self.program.made_of
        )


class ExperimentSpec(CellSpec):
    """What the user wrote. `medexam.specs.matrix` turns it into cells."""

    description: str = ""
    """Shown in MLflow and above the table."""
    optimizer: OptimizerSpec | None = None
    """How `medexam optimize` improves the program; None: the spec is only run."""
    stop_when: StopSpec | None = None
    """When the comparison of a cell with the baseline ends, and the rest of its questions stays unasked; None: all
    cells are asked everything. No digest depends on it."""
    matrix: dict[str, Annotated[list[Any], Field(min_length=1)]] = Field(default_factory=dict)
    """Dotted key of the spec -> the values it takes; every combination is a cell. A value replaces the
    key's own: a program in the matrix takes nothing from the `program` beside it. The key `cells` takes mappings of
    dotted keys to values, which change together."""


def named_code(cell: CellSpec) -> list[str]:
    """List the code of the user's own that a run of `cell` imports, each with what it is for."""
    retrieval = cell.program.retrieval
    retriever = None if retrieval is None or not retrieval.retriever.is_own else retrieval.retriever.kind
    parts = {
        "program": cell.program.code,
        "adapter": cell.program.adapter_code,
        "retriever": retriever,
        "engine": cell.model.engine if cell.program.asks_model and cell.model.is_own else None,
        "benchmark": cell.dataset.name if cell.dataset.is_own else None,
    }
    entries = [f"{part} {name}" for part, name in parts.items() if name is not None]
    return [*entries, *(f"metric {name}" for name in cell.metrics)]
