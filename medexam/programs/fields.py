"""A question as the plain fields that a module of the user's own takes."""

import inspect
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any, get_args, get_origin, get_type_hints

import dspy

from medexam.errors import SpecError
from medexam.questions import Question, Task
from medexam.retrievers.base import Hit
from medexam.specs.programs.steps import PASSAGES, QUESTION_FIELDS

Asked = Question | Task
Wanted = Mapping[str, Any]
"""Name of each field that a module takes -> its type; `inspect.Parameter.empty` where it says none."""
_UNTYPED = inspect.Parameter.empty


class AskedText(str):
    """A question's text, as plain DSPy programs take it, with the attributes of the question."""

    __slots__ = ("source",)
    source: Asked

    def __new__(cls, text: str, question: Asked) -> "AskedText":
        """Make the text of `question`."""
        value = super().__new__(cls, text)
        value.source = question
        return value

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "source":
            raise AttributeError(name)
        return getattr(self.source, name)

    def __reduce__(self) -> tuple[Any, ...]:
        return AskedText, (str(self), self.source)


def wanted_fields(module: dspy.Module, name: str, more: Collection[str] = ()) -> Wanted:
    """Return the fields that `module` is called with: the parameters of its `forward`, else its signature's inputs.

    `more` are the names of fields that it may be called with beside a question's.

    Raises `SpecError`, naming the module as `name`, for a field that is neither.
    """
    parameters, required_names = _parameters(module)
    names = [*QUESTION_FIELDS, PASSAGES, *more]
    if unknown := [field for field in required_names if field not in names]:
        raise SpecError(
            f"program {name} takes {', '.join(unknown)}, which no question has: the fields are {', '.join(names)}"
        )
    field_types = {field: kind for field, kind in parameters.items() if field in names}
    if not field_types:
        raise SpecError(f"program {name} takes nothing of a question: its fields are {', '.join(names)}")
    return field_types


def question_fields(
    question: Asked, field_types: Wanted, hits: Sequence[Hit], more: Mapping[str, Any] = MappingProxyType({})
) -> dict[str, Any]:
    """Return the fields of a question that a module takes, with the passages found for it, and those of `more`."""
    return {
        field: _as_type(more[field], kind) if field in more else _read_field(field, question, field_types, hits)
        for field, kind in field_types.items()
    }


def _read_field(field: str, question: Any, field_types: Wanted, hits: Sequence[Hit]) -> Any:
    """Return one field: options as a list of texts if its type is one, else as text with numbers, a line each.

    The question is itself if its type says so, else its text, with options and context unless they are other fields.
    Where no type is said, the text has the question's attributes too.
    """
    kind, is_exam = field_types[field], isinstance(question, Question)
    lines = [f"{option.number}. {option.text}" for option in question.options] if is_exam else [*question.options]
    stem = (question.stem if "context" in field_types else question.asked) if is_exam else question.question
    match field:
        case "question":
            is_untyped = kind in (_UNTYPED, Any)
            if not is_untyped and kind is not str and str not in get_args(kind):
                return question
            text = stem if "options" in field_types else "\n".join([stem, *lines])
            return AskedText(text, question) if is_untyped else text
        case "stem":
            return stem
        case "options" if _is_list(kind):
            return [option.text if is_exam else option for option in question.options]
        case "options":
            return "\n".join(lines)
        case "option_numbers":
            return list(question.option_numbers) if is_exam else []
        case "passages":
            return _as_type(list(hits), kind)
    return getattr(question, field) or ""


def _as_type(value: Any, kind: Any) -> Any:
    """Return a field as its type says: a list as one text where that is a text, passages as their texts."""
    if isinstance(value, Hit):
        value = value.passage.text
    if isinstance(value, list):
        value = [entry.passage.text if isinstance(entry, Hit) else entry for entry in value]
        return value if _is_list(kind) else "\n\n".join(map(str, value))
    return str(value) if kind is str else value


def _parameters(module: dspy.Module) -> tuple[dict[str, Any], list[str]]:
    """Return name -> type of what the module may be called with, and the names that must be given."""
    method = type(module).forward if hasattr(type(module), "forward") else type(module).aforward
    _, *parameters = inspect.signature(method).parameters.values()
    field_names = [one for one in parameters if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)]
    if field_names:
        try:
            kinds = get_type_hints(method)
        except NameError:
            kinds = {}
        return (
            {one.name: kinds.get(one.name, _UNTYPED) for one in field_names},
            [one.name for one in field_names if one.default is one.empty],
        )
    # `forward(**inputs)`, as DSPy's own modules have it: their signature says what the inputs are.
    signature: Any = getattr(module, "signature", None)
    if signature is None:
        signature = next((predictor.signature for predictor in module.predictors()), None)
    fields = {} if signature is None else signature.input_fields
    return {key: field.annotation for key, field in fields.items()}, list(fields)


def _is_list(kind: Any) -> bool:
    return (get_origin(kind) or kind) in (list, tuple, Sequence)
