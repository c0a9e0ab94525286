"""Programs of the user's own: a DSPy module that code defines, or a DSPy signature that a step asks."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from medexam.plugins import is_own_name
from medexam.specs.base import PROGRAMS, class_name, part_name, short_name
from medexam.specs.programs.base import LookUpSpec, PositiveInt, ProgramSpec
from medexam.specs.programs.needs import AnswerFormat, Asking, EngineNeeds, OptimizerKind

MODULE = "module"
"""The kind under which optimized modules are saved, whatever they are called."""
ADAPTERS = "medexam.adapters"
"""The entry point group of short names for adapters."""
OF_MODULES: tuple[OptimizerKind, ...] = ("bootstrap", "random_search", "mipro", "gepa", "copro")
"""DSPy's optimizers that can improve a module of the user's own."""
_SHORT_ADAPTERS = {"dspy:ChatAdapter": "chat", "dspy:JSONAdapter": "json", "dspy:XMLAdapter": "xml"}


class ModuleSpec(ProgramSpec):
    """Base of the programs that call a DSPy module with a question's fields."""

    answer_format: AnswerFormat = "free"
    """`free` parses what DSPy's adapter reads; `guided` allows only legal values for each output whose type is a choice
    (`Literal`, an enum, a bool, or the int `answer` among the options)."""
    adapter: str = "chat"
    """DSPy's adapter for its predictors: `chat`, `json`, `xml`, or a class or object of one's own, `./file.py:Name`.
    Guided answers use the chat adapter."""
    max_tokens: PositiveInt | None = None
    """Tokens each reply may have; None: the model's `max_tokens`, else 512."""
    load: Path | None = None
    """A folder that `medexam optimize` made, or a `program.json`: instructions and demonstrations of its predictors;
    None asks as it is written."""

    @field_validator("adapter")
    @classmethod
    def _names_adapter(cls, adapter: str) -> str:
        name = class_name(adapter)
        return _SHORT_ADAPTERS.get(name) or part_name(name, tuple(_SHORT_ADAPTERS.values()), ADAPTERS)

    @model_validator(mode="after")
    def _guided_is_chat(self) -> Self:
        if self.answer_format == "guided" and self.adapter != "chat":
            raise ValueError("answer_format 'guided' uses the chat adapter: leave adapter out")
        return self

    @property
    def asking(self) -> Asking:
        """What it asks: dialogues, with choices if guided, else tools and schemas."""
        guided = self.answer_format == "guided"
        return replace(
            super().asking,
            engine_needs=EngineNeeds(guided=guided, chat=True, tools=not guided),
            forms=None,
            # Only replies of the model say what each predictor of a module is asked: a solved question does not.
            optimizers=OF_MODULES,
            saved_as={"kind": MODULE},
            adapter=self.adapter,
        )

    def budget(self, of_model: int | None) -> Any:
        """Return the tokens a reply may have, where the model's own spec says `of_model`; 0 leaves it to a provider."""
        return self.max_tokens or (512 if of_model is None else of_model)


class OwnSpec(ModuleSpec, LookUpSpec):
    """A `dspy.Module` class, or a function that returns a module, from the user's own code.

    `passages` is one of the fields that it may take if it looks some up.
    """

    kind: str
    """`package.module:Name`, `./file.py:Name` (beside the spec), or a name that an installed package adds."""
    args: dict[str, Any] = Field(default_factory=dict)
    """Keyword arguments of the class or function."""
    plain: bool = False
    """Whether its requests are plain texts that replies continue; an engine that takes dialogues alone refuses."""

    @field_validator("kind")
    @classmethod
    def _names_code(cls, kind: str) -> str:
        if not is_own_name(kind, PROGRAMS):
            raise ValueError(f"{kind!r} is neither a kind that ships nor package.module:Name or ./file.py:Name")
        # A run is resumed from any folder, and reported without the package that added a short name.
        return part_name(kind, (), PROGRAMS)

    @property
    def asking(self) -> Asking:
        """What it asks: that of every module, or plain texts alone."""
        own = replace(super().asking, codes=(self.kind,))
        return replace(own, engine_needs=EngineNeeds(plain=True)) if self.plain else own

    @property
    def label(self) -> str:
        """Short name for tables and folders: the object's, and its arguments."""
        arguments = [f"{name}_{value}" for name, value in self.args.items() if isinstance(value, (int, float, str))]
        return "-".join(["-".join([short_name(self.kind), *arguments])[:60], *self.label_words])


class SignatureSpec(ModuleSpec):
    """A DSPy signature that a step asks by one of DSPy's own modules, or by one of ours or the user's."""

    kind: Literal["signature"] = "signature"
