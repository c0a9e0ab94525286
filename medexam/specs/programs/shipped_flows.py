"""The flows that ship: the steps of each kind in YAML with its settings, and the kind that given steps are."""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any, get_args

import yaml

from medexam.specs.programs.asides import AsideSpec
from medexam.specs.programs.asking_steps import AskStep, UseStep, is_text_file
from medexam.specs.programs.base import ProgramSpec
from medexam.specs.programs.behind_passages import (
    BehindPassagesSpec,
    IterativeRetrievalSpec,
    RetrieveThenAnswerSpec,
    RetrieveVerifySpec,
)
from medexam.specs.programs.flows import FlowSpec
from medexam.specs.programs.likelihood import LikelihoodSpec
from medexam.specs.programs.own import SignatureSpec
from medexam.specs.programs.replies import ChainOfThoughtSpec, FewShotSpec, ZeroShotSpec
from medexam.specs.programs.retrieving import SearchSpec
from medexam.specs.programs.steps import RepeatStep, RetrieveStep, UnlessStep, walk_steps
from medexam.specs.retriever import RetrieverSpec

Tree = dict[str, Any]
_FILES = Path(__file__).with_name("shipped")
_MODIFIERS = ("samples", "orders", "max_tokens", "answer_format", "answer_form")
_LOOK_UP = ("k", "query", "query_language")
_OF_FLOW = ("adapter", "adapter_args", "answer_format", "max_tokens", "timeout_s", "load")
_SAID = {"words", "use", "answer_format", "answer_form", "max_tokens", "do", "all", "otherwise"}
"""Fields of steps that their programs have, or that are steps themselves."""
_BESIDE = ("retrieval_prompt", "prompt_language")


@cache
def shipped_text(name: str) -> str | None:
    """Read the YAML of a flow that ships, with its comments; None if there is none of that name."""
    path = _FILES / f"{name}.yaml"
    return path.read_text(encoding="utf-8") if path.is_file() else None


def flow_document(program: ProgramSpec) -> Tree | None:
    """Return the steps of a kind that ships as a spec has them, with its settings; None if it is no flow."""
    settings = program.model_dump(mode="json", exclude_defaults=True, exclude={"kind", "name"})
    if isinstance(program, SignatureSpec):
        return None if program.logprobs else _signature_document(program, settings)
    if getattr(program, "cite", False):
        return None
    variant = f"{program.kind}-{settings.pop('keep')}" if "keep" in settings else program.kind
    if (text := shipped_text(variant)) is None:
        return None
    document: Tree = deepcopy(yaml.safe_load(text))
    _look_up(document, program, settings)
    if isinstance(program, RetrieveVerifySpec):
        _judge(document, program, settings)
    for name, value in settings.items():
        _place(document, name, value)
    return document


def flow_of(program: ProgramSpec) -> FlowSpec | None:
    """Return the steps of a kind that ships; None if it is no flow."""
    document = flow_document(program)
    return None if document is None else FlowSpec.model_validate(document)


def _signature_document(program: SignatureSpec, settings: Tree) -> Tree:
    step: Tree = {"ask": program.signature}
    if program.module != "predict":
        step["by"] = program.module
    if program.instructions:
        step["instructions"] = program.instructions
    document: Tree = {"name": program.kind, **{name: settings[name] for name in _OF_FLOW if name in settings}}
    document["steps"] = [step]
    _look_up(document, program, settings)
    return document


def _look_up(document: Tree, program: ProgramSpec, settings: Tree) -> None:
    """Place how passages are looked up; those of a kind that may look up none stand before its one step."""
    places = {name: settings.pop(name) for name in _LOOK_UP if name in settings}
    retriever = settings.pop("retriever", None)
    if isinstance(program, SearchSpec) and program.retrieval is None:
        return
    if retriever is not None:
        document["retriever"] = retriever
    if isinstance(program, SearchSpec) and not isinstance(program, BehindPassagesSpec):
        (step,) = document["steps"]
        if not isinstance(program, SignatureSpec):
            step["ask"] = step["ask"].replace(" ->", ", passages ->")
            settings.pop("context", None)
        document["steps"] = [{"retrieve": "stem", "k": program.k}, step]
    for step in _walk(document["steps"]):
        if "retrieve" in step:
            step |= places


def _judge(document: Tree, program: RetrieveVerifySpec, settings: Tree) -> None:
    """Place who judges passages and answer, and what becomes of an answer without support."""
    if program.in_words is not None:
        for step in _walk(document["steps"]):
            if step.get("words") in ("helps", "supports"):
                step["words"] = {"group": step["words"], "wrong": "wrong_answer"}
            elif "words" in step:
                step["ask"] = "question, passages -> answer"
    judge = {name: settings.pop(name) for name in ("reader", "revision", "least") if name in settings}
    for step in _walk(document["steps"]) if "reader" in judge else ():
        if step.get("words") in ("helps", "supports"):
            step |= {"ask": f"{step['ask']}, support: float", "words": judge}
    if settings.pop("unsupported", "keep") == "abstain":
        document["steps"].append({"unless": "supported", "do": [{"use": "abstain"}]})


def _place(document: Tree, name: str, value: Any) -> None:
    """Put a setting of a kind into the steps that it concerns."""
    for step in _walk(document["steps"]):
        if "repeat" in step and name == "rounds":
            step["repeat"] = value
        elif "each" in step and "most" in step and name == "queries":
            step["most"] = value
        if "words" not in step:
            continue
        words = step["words"] if isinstance(step["words"], Mapping) else {"kind": step["words"]}
        if step["words"] in ("helps", "supports"):
            words = {"group": step["words"]}
        if "answer" not in step["ask"].partition("->")[2]:
            if name in _BESIDE and "reader" not in words:
                words = {**words, "prompt" if name == "retrieval_prompt" else name: value}
            elif name == "queries" and "most" in words:
                words = {**words, "most": value}
        elif name in _MODIFIERS:
            step[name] = value
        elif name == "then":
            words = {**words, "kind": value}
        elif name not in ("rounds", "queries", "retrieval_prompt"):
            words = {**words, name: value}
        step["words"] = words["kind"] if words.keys() == {"kind"} else words


def _walk(steps: list[Tree]) -> Iterator[Tree]:
    for step in steps:
        yield step
        for inner in ("do", "else"):
            yield from _walk(step.get(inner, []))


def as_kind(program: Any) -> Any:
    """Return the kind that ships whose steps a flow has, with its settings; any other program as it is."""
    if type(program) is not FlowSpec:
        return program
    if (used := _read_use(program)) is not None:
        return used
    try:
        kind_spec = _read_kind(program)
        flow = None if kind_spec is None else flow_of(kind_spec)
    except ValueError:
        return program
    return kind_spec if flow is not None and _form(flow) == _form(program) else program


def _read_use(flow: FlowSpec) -> ProgramSpec | None:
    """Return the program that the only step uses; None if the step or the flow changes anything around it."""
    step = flow.steps[0]
    if len(flow.steps) > 1 or not isinstance(step, UseStep) or not flow.model_fields_set <= {"kind", "name", "steps"}:
        return None
    around = (step.model, step.temperature, step.outer_samples, step.outer_orders, step.rename, step.add)
    if set(around) != {None} or step.instructions is not None:
        return None
    program = step.program
    if flow.name in ("flow", program.kind):
        return program
    is_named = "name" in type(program).model_fields
    return program.model_copy(update={"name": flow.name}) if is_named else None


def _read_kind(flow: FlowSpec) -> ProgramSpec | None:
    """Return the kind that steps are if they are one; whether they are is for the caller to see."""
    steps = dict(walk_steps(flow.steps))
    asks = {place: step for place, step in steps.items() if isinstance(step, AskStep)}
    answering = [place for place, step in asks.items() if "answer" in step.signature.outputs]
    if len(answering) != 1:
        return None
    (place,) = answering
    step, asking = asks[place], flow.parts[place].program
    settings = asking.model_dump(exclude_defaults=True, exclude={"kind", "name"})
    settings |= {name: value for name in ("samples", "orders") if (value := getattr(step, name)) is not None}
    settings |= {} if flow.name in ("flow", asking.kind) else {"name": flow.name}
    retrieve = next((step for step in steps.values() if isinstance(step, RetrieveStep)), None)
    if retrieve is not None:
        settings |= {name: getattr(retrieve, name) for name in _LOOK_UP}
        settings |= {} if flow.retriever is None else {"retriever": flow.retriever}
    if isinstance(asking, SignatureSpec):
        instructions = step.instructions or ""
        if not isinstance(instructions, str) or is_text_file(instructions):
            return None
        own = {"instructions": instructions, "timeout_s": flow.timeout_s, "load": flow.load}
        return SignatureSpec.model_validate({**settings, **own, "retriever": flow.retriever})
    repeat = next((step for step in steps.values() if isinstance(step, RepeatStep)), None)
    asides = [part.program for part in flow.parts.values() if isinstance(part.program, AsideSpec)]
    kind: type[ProgramSpec] = type(asking)
    if retrieve is not None and (asides or kind in (ZeroShotSpec, FewShotSpec, ChainOfThoughtSpec)):
        settings["then"] = asking.kind
        kind = IterativeRetrievalSpec if repeat else RetrieveVerifySpec if asides else RetrieveThenAnswerSpec
    elif retrieve is not None:
        settings |= {"context": "retrieved"} if kind is LikelihoodSpec else {}
        settings["retriever"] = flow.retriever or RetrieverSpec()
    if asides:
        aside = asides[0].model_dump(include={"reader", "revision", "least"}, exclude_defaults=True)
        settings |= {**aside, "retrieval_prompt": asides[0].prompt}
    if repeat is not None and retrieve is not None and asides:
        settings |= {"rounds": repeat.repeat, "queries": asides[0].most}
        settings |= {"keep": "passages"} if retrieve.add else {}
        settings = {name: value for name, value in settings.items() if name not in ("query", "query_language")}
    if any(isinstance(step, UnlessStep) for step in steps.values()):
        settings["unsupported"] = "abstain"
    if settings.get("name") == get_args(kind.model_fields["kind"].annotation)[0]:
        del settings["name"]
    return kind.model_validate(settings)


def _form(flow: FlowSpec) -> tuple[Any, ...]:
    """Return what makes two flows one: their steps, however their modifiers are written, and what these ask."""
    steps = [(place, step.step, step.model_dump(exclude=_SAID)) for place, step in walk_steps(flow.steps)]
    programs = {place: part.program for place, part in flow.parts.items()}
    retriever = None if flow.retrieval is None else flow.retriever or RetrieverSpec()
    return steps, programs, retriever, flow.retrieval, flow.timeout_s, flow.load
