"""The steps of programs in YAML, over one set of named fields: what a step may say, which fields it reads and writes.

A DSPy signature says what a step reads and writes; `words.yaml` says which keys each step has. Anything that
steps cannot say is Python through `use`, `by` or `combine`.
"""

import ast
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Self, get_args

import yaml
from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    StringConstraints,
    Tag,
    model_validator,
)

from medexam.errors import SpecError
from medexam.questions import Language
from medexam.specs.base import PlacedError, Spec, part_of, short_name
from medexam.specs.programs.needs import AnswerFormat, PositiveInt, Query
from medexam.specs.programs.words import TABLE, Orders, VariantSpec, WordsSpec
from medexam.text import nearest

if TYPE_CHECKING:
    from medexam.specs.programs.programs import ProgramSpec as AnyProgram

Types = dict[str, str]
"""Name of each field -> its type, as a signature writes it."""
QUESTION_FIELDS: Mapping[str, str] = {
    "question": "str",
    "stem": "str",
    "options": "str",
    "option_numbers": "list[int]",
    "context": "str",
    "language": "str",
}
"""The fields that every question has, with their types."""
VOTE_FIELDS: Types = {"agreement": "float", "tied": "bool"}
"""What a vote writes beside its answer: the share of the votes that it has, and whether another has as many."""
PASSAGES = "passages"
"""The field that look-ups write."""
_OWN_CODE = ""
"""The group of code that has no short names."""
_HITS = "list[passage]"
_OPTIONS = "list[option]"
By = Literal["predict", "chain_of_thought", "react"]
BY: tuple[str, ...] = get_args(By)
"""Modules of DSPy's and ours that an `ask` may be asked by; any other is a class of the user's own."""
NEAREST = "minilm"
"""The encoder by which `nearest` demonstrations are chosen."""
Combine = Literal["vote", "mean_probability"]
COMBINE: tuple[str, ...] = get_args(Combine)
"""Ways to make one answer of those of several branches; any other is a function of the user's own."""
STEPS: Mapping[str, Sequence[str]] = TABLE["steps"]
"""Name of a step -> the keys that it may have beside its name."""
FieldName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,63}$")]


class SignatureText(NamedTuple):
    """Name of each field -> its type as it is written, `str` if none is."""

    inputs: Mapping[str, str]
    outputs: Mapping[str, str]


@lru_cache(maxsize=1024)
def read_signature(text: str) -> SignatureText:
    """Read a signature such as `question, options -> answer: int`; raises `ValueError` if it is none."""
    try:
        sides: Any = [ast.parse(f"def signature({side}): ...").body[0] for side in text.partition("->")[::2]]
    except SyntaxError:
        sides = []
    fields = [
        {field.arg: ast.unparse(field.annotation) if field.annotation else "str" for field in side.args.args}
        for side in sides
    ]
    if not fields or not all(fields):
        raise ValueError(f"{text!r} is not a signature, such as 'question, options -> answer: int'")
    signature = SignatureText(*fields)
    if twice := signature.inputs.keys() & signature.outputs.keys():
        raise ValueError(f"{text!r} reads and writes {', '.join(sorted(twice))}: give the output a name of its own")
    return signature


def _check_count(steps: tuple[Any, ...], least: int = 1) -> tuple[Any, ...]:
    # A minimum of pydantic's is also said of steps that are left out because they are wrong.
    if len(steps) < least:
        raise ValueError(f"a list of {'branches' if least > 1 else 'steps'} needs {least} or more")
    return steps


Steps = Annotated[tuple["Step", ...], AfterValidator(_check_count)]
Branch = Annotated[Steps, BeforeValidator(lambda branch: [branch] if isinstance(branch, Mapping | Spec) else branch)]


class Limit(Spec):
    """A condition on a number."""

    field: FieldName
    """The field that is compared."""
    below: float | None = None
    """The condition holds where the field is less."""
    above: float | None = None
    """The condition holds where the field is more."""


Condition = Annotated[
    Annotated[FieldName, Tag("(a field)")] | Annotated[Limit, Tag("(a limit)")],
    Discriminator(lambda value: "(a field)" if isinstance(value, str) else "(a limit)"),
]


class Step(VariantSpec):
    """A step of a program; `STEPS` says which keys stand beside the one that names it."""

    model_config = ConfigDict(serialize_by_alias=True)
    ask: Annotated[str, AfterValidator(lambda text: read_signature(text) and text)] | None = None
    """Ask a DSPy signature such as `question, options, passages -> answer: int`."""
    use: Annotated["AnyProgram | None", BeforeValidator(lambda value: as_program(value))] = None
    """Let a program answer: a kind, `{kind: likelihood, read: label}`, `./x.py:Class`, or steps; it writes `answer`."""
    retrieve: FieldName | None = None
    """Look up passages by a field: a text, or a list of texts."""
    each: FieldName | None = None
    """Do steps for each entry of a list, or of `options`, the question's own; after each only what they `add` stays."""
    repeat: Annotated[int, Field(ge=1, le=100)] | None = None
    """Do steps again and again, so often at most."""
    when: Condition | None = None
    """Do steps if a condition holds: a field is true or not empty, or a number in a limit."""
    unless: Condition | None = None
    """Do steps if a condition does not hold."""
    drop: FieldName | None = None
    """Leave out the option whose number a field holds, or several of a list[int]; two at least stay."""
    all: Annotated[tuple[Branch, ...], AfterValidator(lambda branches: _check_count(branches, 2))] | None = None
    """Do branches side by side, two or more: a step each, or a list of steps; each sees the fields as they were."""
    model: str | None = None
    """One of the experiment's `models`; None: its `model`."""
    samples: Annotated[int, Field(ge=1, le=1000)] = 1
    """Replies to each question, of which the commonest legal answer is taken; several need a `model.temperature`."""
    orders: Orders = "given"
    """Orders of the options that are asked and vote: `given`, `cyclic`, `reversed`, or drawn ones, as `random4`."""
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    """That of this step; None: the model's."""
    rename: Annotated[FieldName | None, Field(alias="as")] = None
    """What the one output, or the passages, are called; None: as the signature says, or `passages`."""
    add: FieldName | None = None
    """A list that the step's one output, or each new passage, is added to, which is empty at first; None: a field."""
    by: Annotated[str, part_of(_OWN_CODE, By)] = "predict"
    """`predict`, `chain_of_thought`, `react` (its tool is the retriever), or a class that takes a signature."""
    max_tokens: PositiveInt | None = None
    """Tokens each reply may have; None: the program's own, or the model's."""
    answer_format: AnswerFormat | None = None
    """`free` or `guided`; None: the program's own."""
    instructions: str | dict[Language, str] | None = None
    """What the model is told: a text, a file (`./judge.txt` or `.md`), or one of both for each language."""
    demos: tuple[dict[str, Any], ...] | str = ()
    """Solved examples, each a mapping of the signature's fields; or a YAML or JSON file of them."""
    nearest: PositiveInt | None = None
    """How many of `demos` a question is shown, those whose `question` is nearest to it; None: all, to each."""
    words: WordsSpec | None = None
    """Ask in words that ship: `zero_shot`, `{kind: few_shot, examples: mine.yaml}`, `helps`; None: in DSPy's."""
    cite: (
        Annotated[
            WordsSpec, BeforeValidator(lambda cite: {"group": "cite", **cite} if isinstance(cite, Mapping) else cite)
        ]
        | None
    ) = None
    """With `words`: number the passages, and have the reply name the one behind its answer: `{}`, or words."""
    k: PositiveInt = 2
    """Passages for each text; the paper's 2."""
    numbered: bool = False
    """Whether each passage begins with its number, such as `[2]`, by which a model can name it."""
    query: Query = "stem"
    """Of `retrieve: stem`: what is looked up; `per_option`: the stem with each option, and the best over all."""
    query_language: Language | None = None
    """Of `retrieve: stem`: look up the same question in this language, found by its key; None: that of the question."""
    name: FieldName = "entry"
    """What an entry is called in the steps."""
    most: PositiveInt | None = None
    """Entries at most, the first ones; None for passages and options: all."""
    keep: Condition | None = None
    """Keep the entries for which the steps make this true; None keeps all."""
    until: Condition | None = None
    """What ends it once it holds; None: never."""
    as_long_as: Annotated[Condition | None, Field(alias="while")] = None
    """What ends it once it does not hold; None: never."""
    do: Steps = ()
    """The steps that are done."""
    otherwise: Annotated[Steps | None, Field(alias="else")] = None
    """Steps that are done if the condition does not decide for `do`; None does none."""
    combine: Annotated[str, part_of(_OWN_CODE, Combine)] | None = None
    """Makes one `answer` of those of the branches: `vote`, `mean_probability`, or `./x.py:f`; None: each its own."""

    @classmethod
    def keys_of(cls, tree: Mapping[str, Any]) -> Collection[str]:
        """Return the keys that such a step has."""
        names = [name for name in STEPS if tree.get(name) is not None]
        if "only" in tree:
            raise PlacedError("only", "belongs to the file of a strategy: leave it out")
        if len(names) != 1:
            near = next(filter(None, (nearest(str(key), [*STEPS]) for key in tree)), None)
            raise ValueError(
                f"a step is one of {', '.join(STEPS)}, found {' and '.join(names) if names else repr(tree)[:60]}"
                + (f": did you mean {near}?" if near and not names else "")
            )
        if "do" in STEPS[names[0]] and "do" not in tree:
            raise PlacedError("do", "is missing")
        return (*names, *STEPS[names[0]])

    @model_validator(mode="after")
    def _fits(self) -> Self:
        inputs, outputs = self.signature
        asks, texts = self.words and self.words.asks, [name for name in self.texts if name != "answer"]
        one_type = [*outputs.values()] in (["bool"], ["str"], ["list[str]"])
        writes_answer = "answer" in outputs and outputs.keys() <= {"answer", "rationale"}
        refusals = {
            "as and add need exactly one output": len(outputs) > 1 and (self.rename or self.add),
            "cite needs words that name an option, and passages: read `question, options, passages`": (
                self.cite is not None and (asks != "reply" or self.texts != (PASSAGES,))
            ),
            "these words take no answer_format or max_tokens: leave it out": self.words
            and {"answer_format", "max_tokens"} & {name for name, value in self if value} - {*self.words.own},
            "these words show a question and one text, and return one bool, str or list[str]": asks == "aside"
            and not (one_type and len(texts) <= 2 - ("question" in inputs)),
            "these words read `question` and one text, and write only `answer`, and `rationale` if they reason": (
                asks not in (None, "aside") and not (writes_answer and "question" in inputs and len(self.texts) <= 1)
            ),
        }
        if refusal := next((words for words, applies in refusals.items() if applies), None):
            raise ValueError(refusal)
        return self

    @cached_property
    def step(self) -> str:
        """The key that names it."""
        return next(name for name in STEPS if getattr(self, name) is not None)

    @property
    def asks(self) -> bool:
        """Whether it asks something, or lets a program answer."""
        return self.ask is not None or self.use is not None

    @property
    def field(self) -> str:
        """The field that `retrieve`, `each` or `drop` is about."""
        return self.retrieve or self.each or self.drop or ""

    @property
    def branches(self) -> "Mapping[str, Steps]":
        """The steps inside this one, by their place in it."""
        inner = {"do": self.do, "else": self.otherwise or ()}
        inner |= {f"all.{position}": branch for position, branch in enumerate(self.all or ())}
        return {name: steps for name, steps in inner.items() if steps}

    @property
    def signature(self) -> SignatureText:
        """The fields of the signature that it asks; none where it asks no signature."""
        return read_signature(self.ask) if self.ask else SignatureText({}, {})

    @property
    def outputs(self) -> Mapping[str, str]:
        """Name of each field that it writes by asking -> its type."""
        return self.signature.outputs if self.ask else {"answer": "int", "rationale": "str"}

    @property
    def texts(self) -> tuple[str, ...]:
        """The names of the fields that its signature reads beside the question's own."""
        return tuple(name for name in self.signature.inputs if name not in QUESTION_FIELDS)

    @property
    def called(self) -> str:
        """What its predictors are called by: its output, or the kind of the program that it uses."""
        output = re.sub(r"\W", "_", short_name(self.use.kind)) if self.use else next(iter(self.outputs))
        return self.rename or self.add or output

    @property
    def votes(self) -> bool:
        """Whether several replies make its answer."""
        return self.samples > 1 or self.orders != "given"

    def read_words(self, language: Language) -> dict[str, Any]:
        """Read `instructions`, a text, and `demos`, a list of mappings; what the step does not say is left out.

        Raises `SpecError` if a file cannot be read, or there are no instructions in `language`.
        """
        words: dict[str, Any] = {}
        text = self.instructions
        if isinstance(text, Mapping):
            if language not in text:
                raise SpecError(f"instructions: none in {language!r}: add some beside those in {', '.join(text)}")
            text = text[language]
        if text is not None:
            is_file = text.endswith((".txt", ".md")) and len(text.split()) == 1
            words["instructions"] = _read_file(text).strip() if is_file else text
        if self.demos:
            demos = yaml.safe_load(_read_file(self.demos)) if isinstance(self.demos, str) else [*self.demos]
            if not isinstance(demos, list) or not all(isinstance(demo, dict) for demo in demos):
                raise SpecError("demos: not a list of mappings with the signature's fields")
            words["demos"] = demos
        return words


def as_program(value: Any) -> Any:
    """Return a program with its fields; a string stands for its kind, and steps are one of their own."""
    if isinstance(value, Mapping) and "steps" in value and "kind" not in value:
        return {"kind": "flow", **value}
    return {"kind": value} if isinstance(value, str) else value


def walk_steps(steps: Steps, place: str = "steps") -> Iterator[tuple[str, Step]]:
    """Yield every step with its place in the spec, such as `steps.2.do.0`, those inside others behind them."""
    for position, step in enumerate(steps):
        step_place = f"{place}.{position}"
        yield step_place, step
        for inner, branch in step.branches.items():
            yield from walk_steps(branch, f"{step_place}.{inner}")


def _read_file(file: str) -> str:
    try:
        return Path(file).expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(f"cannot read {file}: {error}") from None


def check_fields(steps: Steps) -> dict[str, Types]:
    """Return the fields before each step that asks, by its place.

    Raises `PlacedError` for a field that nothing wrote before, a condition that is always true, two writers of one name
    beside each other, and steps that give no `answer`.
    """
    before: dict[str, Types] = {}
    if not _follow(steps, "steps", dict(QUESTION_FIELDS), before).get("answer"):
        raise PlacedError("steps", "the steps may end without an answer: end with a step that always writes `answer`")
    return before


def added_lists(steps: Steps) -> Types:
    """Return the lists that steps, at any depth, add to, with their types; each is empty at first."""
    return {step.add: _HITS if step.retrieve else "list[str]" for _, step in walk_steps(steps) if step.add is not None}


def _follow(steps: Steps, place: str, fields: Types, before: dict[str, Types]) -> Types:
    """Return the fields that steps write, without a type where they may leave one out."""
    lists, outputs = added_lists(steps), Types()
    fields = {**lists, **fields}
    for position, step in enumerate(steps):
        step_place = f"{place}.{position}"
        new = _writes(step, step_place, fields, before)
        names = new.keys() if step.each != "options" else new.keys() - {"options"}
        if own := {*names, step.name, step.add} & QUESTION_FIELDS.keys():
            raise PlacedError(step_place, f"{', '.join(own)} is the question's own: choose another name")
        if bad := next((name for name in lists if not new.get(name, "list[").startswith("list[")), None):
            raise PlacedError(step_place, f"{bad} is a list that steps add to: write another name")
        outputs |= {name: kind or outputs.get(name, "") for name, kind in new.items()}
        fields |= _sure(new)
    return outputs


def _sure(outputs: Types) -> Types:
    return {name: kind for name, kind in outputs.items() if kind}


def _writes(step: Step, place: str, fields: Types, before: dict[str, Types]) -> Types:
    match step.step:
        case "ask" | "use":
            before[place] = fields
            return _ask(step, place, fields)
        case "retrieve":
            _check(step.field, f"{place}.retrieve", fields, "str", "list[str]")
            return {} if step.add else {step.rename or PASSAGES: _HITS}
        case "drop":
            _check(step.field, f"{place}.drop", fields, "int", "list[int]")
            return {}
        case "all":
            return _all(step, place, fields, before)
        case "each":
            return _each(step, place, fields, before)
        case "repeat":
            outputs = _follow(step.do, f"{place}.do", fields, before)
            _check_condition(step.until, f"{place}.until", fields | _sure(outputs))
            _check_condition(step.as_long_as, f"{place}.while", fields | _sure(outputs))
            return outputs
    _check_condition(step.when or step.unless, f"{place}.{step.step}", fields)
    then = _follow(step.do, f"{place}.do", fields, before)
    other = _follow(step.otherwise or (), f"{place}.else", fields, before)
    kinds = {name: [one.get(name) or fields.get(name, "") for one in (then, other)] for name in then | other}
    return {name: second if first else "" for name, (first, second) in kinds.items()}


def _each(step: Step, place: str, fields: Types, before: dict[str, Types]) -> Types:
    name = step.field
    kind = _OPTIONS if name == "options" else _check(name, f"{place}.each", fields)
    if not kind.startswith("list["):
        raise PlacedError(f"{place}.each", f"{name} is {kind}: write it as {name}: list[str]")
    if step.most is None and kind not in (_HITS, _OPTIONS):
        raise PlacedError(f"{place}.each", f"the number of {name} is unknown: add `most`, such as most: 4")
    entry = "str" if kind in (_HITS, _OPTIONS) else kind.removeprefix("list[").removesuffix("]")
    inner = {**fields, step.name: entry}
    _check_condition(step.keep, f"{place}.keep", inner | _sure(_follow(step.do, f"{place}.do", inner, before)))
    return {name: kind} if step.keep is not None else {}


def _ask(step: Step, place: str, fields: Types) -> Types:
    for name in step.signature.inputs:
        _check(name, f"{place}.ask", fields)
    if step.orders != "given" and (others := [name for name in step.texts if name != PASSAGES]):
        raise PlacedError(
            f"{place}.orders",
            f"{', '.join(others)} may name options by number, and other orders change these numbers: leave orders out",
        )
    if step.votes and "answer" not in step.outputs:
        name = "orders" if step.samples == 1 else "samples"
        raise PlacedError(f"{place}.{name}", "they vote on `answer`, which the step does not write: leave it out")
    outputs = dict(step.outputs)
    if step.rename is not None:
        outputs = {step.rename: outputs.get("answer") or next(iter(outputs.values()))}
    return ({} if step.add is not None else outputs) | (VOTE_FIELDS if step.votes else {})


def _all(step: Step, place: str, fields: Types, before: dict[str, Types]) -> Types:
    writers: dict[str, int] = {}
    types: Types = {}
    for position, branch in enumerate(step.all or ()):
        branch_place = f"{place}.all.{position}"
        new = _follow(branch, branch_place, fields, before)
        if step.combine is not None and "answer" not in new:
            raise PlacedError(branch_place, "has no answer to combine: write `answer` in this branch")
        if step.combine is None and (twice := sorted(new.keys() & writers.keys() - VOTE_FIELDS.keys())):
            raise PlacedError(
                branch_place,
                f"{twice[0]} is also written by branch {writers[twice[0]]}: rename one with `as`, or combine the "
                "branches",
            )
        writers |= dict.fromkeys(new, position)
        types |= new
    return types if step.combine is None else {"answer": "int", "rationale": "str", **VOTE_FIELDS}


def _check(name: str, place: str, fields: Types, *kinds: str) -> str:
    """Return the type of a field; raises `PlacedError` if it is not there, or is none of `kinds`."""
    if name not in fields:
        suggestion = nearest(name, list(fields))
        advice = f"did you mean {suggestion}? " if suggestion else ""
        advice = "put `retrieve` before it: " if name == PASSAGES else advice
        raise PlacedError(place, f"nothing before it writes {name}: {advice}the fields here are {', '.join(fields)}")
    if kinds and fields[name] not in kinds:
        raise PlacedError(place, f"{name} is {fields[name]}: name a field that is {' or '.join(kinds)}")
    return fields[name]


def _check_condition(condition: Condition | None, place: str, fields: Types) -> None:
    """Raise `PlacedError` unless a field may be true or false, or empty, or is a number that is compared."""
    if isinstance(condition, Limit):
        _check(condition.field, place, fields, "float", "int")
        return
    kind = "bool" if condition is None else _check(condition, place, fields)
    if kind != "bool" and not kind.startswith("list[") and condition not in ("answer", "context"):
        raise PlacedError(
            place, f"{condition} is {kind}: write it as {condition}: bool, or compare a number by `below` or `above`"
        )
