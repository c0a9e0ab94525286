"""From Python objects to a planned run of examples: its folder, its identity, and which examples are pending."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import dspy

from medexam.datasets.examples import EXAMPLES_FILE, ExampleRecord, build_example_set, read_examples
from medexam.errors import DatasetError, SpecError
from medexam.experiments.evaluate.identity import (
    describe_part,
    describe_value,
    digest_part,
    model_settings,
)
from medexam.experiments.evaluate.program import ExampleCalls, ExampleProgram
from medexam.experiments.plan.cells import Plan, PlannedCell, take_stock
from medexam.experiments.plan.lending import describe_lent, with_lender
from medexam.experiments.plan.prompt_samples import SAMPLE_TEXTS, prompts_of
from medexam.experiments.store.environment import list_prices
from medexam.experiments.store.run_folder import RunFolder
from medexam.measures import find_benchmark
from medexam.plugins import name_object
from medexam.programs.lm import EngineLM, run_blocking
from medexam.programs.own import call_module
from medexam.specs import CellSpec, ModelSpec
from medexam.specs.dataset import EXAMPLES
from medexam.specs.identity import READER_VERSION, digest
from medexam.specs.validation import validate

KEY_DIGITS = 16
"""Hexadecimal digits of an example's key: 64 bits."""
_SETTINGS = ("adapter", "rm", "interpreter_factory", "allow_tool_async_sync_conversion")
"""What `dspy.configure` may say, beside the model, that answers depend on."""


@dataclass(frozen=True)
class EvaluationPlan:
    """An evaluation that is ready to run."""

    plan: Plan
    keys: tuple[str, ...]
    """Of each example of the set, in its order."""

    @property
    def folder(self) -> RunFolder:
        """Where its answers are kept."""
        return self.plan.cells[0].folder


def plan_evaluation(
    name: str, calls: ExampleCalls, lm: Any, devset: Sequence[dspy.Example], runs_dir: Path, *, fresh: bool
) -> EvaluationPlan:
    """Plan what evaluating would do, and write the examples into its folder; `calls` learns their keys.

    The last run of the same name, module, model and metric is continued, unless `fresh`. Raises `RunBusyError` if
    another process writes it.
    """
    records = make_records(devset)
    identity = describe_evaluation(calls, lm) | {"prompts": _sample_prompts(calls.program, devset[0].inputs().toDict())}
    model = getattr(lm, "model", "").rsplit("/", 1)[-1] or "own_models"
    run_digest = digest(identity)
    folder = RunFolder.last_or_new([name, model, called(calls.program)], run_digest, runs_dir, fresh=fresh)
    folder = replace(folder, spec_digest=run_digest)
    folder.create()
    with folder.locked():
        _write_examples(folder, records)
    cell = _cell(name, calls, lm, identity, folder)
    unique = {record.key: record for record in records}
    items = build_example_set(cell.dataset, unique.values(), "")
    calls.examples = dict(zip((record.key for record in records), devset, strict=True))
    pending, right, answered = take_stock(folder, items, find_benchmark(cell.dataset))
    planned = PlannedCell(
        cell=cell,
        question_set=items,
        program=ExampleProgram(calls),
        identity=identity,
        spec_digest=run_digest,
        folder=folder,
        retrieval=None,
        nearest=None,
        pending=pending,
        right=right,
        answered=answered,
    )
    planned = planned if fresh else with_lender(planned)
    plan = Plan(
        name=name,
        description="",
        experiment_digest=digest({"name": name, "cells": [digest(identity)]}),
        cells=(planned,),
        runs_dir=runs_dir,
        news=tuple(filter(None, [describe_lent(planned)])),
        fresh=fresh,
        ways_out="or start over with fresh=True",
    )
    return EvaluationPlan(plan, tuple(record.key for record in records))


def make_records(devset: Sequence[dspy.Example]) -> list[ExampleRecord]:
    """Describe examples as JSON under keys of their content; raises `DatasetError` for one without named inputs."""
    times: Counter[str] = Counter()
    records = []
    for place, example in enumerate(devset):
        try:
            inputs, labels = example.inputs().toDict(), example.labels().toDict()
        except (AttributeError, ValueError) as error:
            raise DatasetError(
                f"example {place} of devset: {error}; give an example such as dspy.Example(...).with_inputs('question')"
            ) from None
        content = {"inputs": describe_value(inputs), "labels": describe_value(labels)}
        key = digest_part(content, KEY_DIGITS)
        times[key] += 1
        records.append(ExampleRecord(key if times[key] == 1 else f"{key}-{times[key]}", **content))
    return records


def describe_evaluation(calls: ExampleCalls, lm: Any) -> dict[str, Any]:
    """Describe all that an answer and its score depend on beside the example."""
    settings = {name: dspy.settings.get(name) for name in _SETTINGS}
    return {
        "program": describe_part(calls.program),
        "metric": describe_part(calls.metric),
        "model": describe_value(lm),
        "settings": {name: describe_value(value) for name, value in settings.items() if value is not None},
        "failure_score": calls.failure_score,
        "dspy": dspy.__version__,
        "reader_version": READER_VERSION,
    }


def _sample_prompts(program: Any, inputs: Mapping[str, Any]) -> list[str | None] | None:
    """Return a hash of what the program asks for each of three invented examples; None where it shows none.

    They have the fields of `inputs`, and none is made up unless all values are texts, numbers, lists or mappings.
    """

    def prepare() -> Callable[[Any], Any]:
        # What a module remembers of an invented example must not reach a real one.
        copy = program.deepcopy() if isinstance(program, dspy.Module) else program
        for predictor in copy.predictors() if isinstance(copy, dspy.Module) else ():
            predictor.lm = None

        def ask(values: dict[str, Any]) -> None:
            with dspy.context(trace=[]):
                run_blocking(call_module(copy, values))

        return ask

    try:
        invented = [{name: _invent(value, text) for name, value in inputs.items()} for text in SAMPLE_TEXTS]
    except TypeError:
        return None
    return prompts_of(prepare, invented, twice=not type(program).__module__.startswith("dspy."))


def _invent(value: Any, text: str) -> Any:
    """Return a value of the same type that is in no data set."""
    match value:
        case str():
            return text
        case bool() | None:
            return value
        case int() | float():
            return type(value)(7)
        case Mapping():
            return {name: _invent(part, text) for name, part in value.items()}
        case list() | tuple():
            return [_invent(part, text) for part in value[:1]]
    raise TypeError


def called(program: Any) -> str:
    """Return how tables call a module: its class, or a function's name."""
    label: str = type(program).__name__ if isinstance(program, dspy.Module) else getattr(program, "__name__", "program")
    return label.strip("<>")


def model_part(lm: Any, *, priced: bool = False) -> dict[str, Any]:
    """Return the `model` part of a spec for a model that a script made; it names the object, and says its settings.

    What the object leaves to its provider, the run leaves to it too. `priced`: with its price by litellm's list,
    unless the script names a server of its own.
    """
    if isinstance(lm, EngineLM) and lm.spec is not None:
        return lm.spec.model_dump(exclude_unset=True)
    if lm is None:
        return {"engine": name_object(None, "none", "module"), "name": "set by the module"}
    settings = model_settings(lm)
    temperature = settings.get("temperature")
    is_usual = isinstance(temperature, (int, float)) and 0 <= temperature <= 2
    sampling = {
        "temperature": temperature if is_usual else None,
        # DSPy renames the budget for OpenAI's models that think.
        "max_tokens": settings.get("max_tokens") or settings.get("max_completion_tokens") or 0,
    }
    engine = name_object(lm, type(lm).__name__, digest_part(describe_value(lm)))
    price = _list_price(lm) if priced else {}
    return {"engine": engine, "name": lm.model, "args": settings, "seed": settings.get("seed"), **sampling, **price}


def _list_price(lm: Any) -> dict[str, Any]:
    if lm.kwargs.get("api_base") or lm.kwargs.get("base_url"):
        return {}
    prices = list_prices(ModelSpec(engine="litellm", name=lm.model))
    return {} if prices is None else {"price": (prices["prompt_usd"] * 1e6, prices["completion_usd"] * 1e6)}


def program_part(program: Any) -> dict[str, Any]:
    """Return the `program` part of a spec for a module that a script made, and for the adapter of `dspy.configure`."""
    kind = name_object(program, called(program), digest_part(describe_part(program)))
    adapter = dspy.settings.adapter
    if adapter is None:
        return {"kind": kind}
    return {"kind": kind, "adapter": name_object(adapter, type(adapter).__name__, digest_part(describe_value(adapter)))}


def unset_models(program: dspy.Module, models: Sequence[Any]) -> dspy.Module:
    """Return a module whose predictors ask the run's model: a copy without the LMs of `set_lm`, if it has any.

    Raises `SpecError` if one of them is another model than each of `models`.
    """
    own_models = {name: part.lm for name, part in program.named_predictors() if part.lm is not None}
    if not own_models:
        return program
    descriptions = [describe_value(model) for model in models if isinstance(model, dspy.BaseLM)]
    for name, lm in own_models.items():
        if len(descriptions) != len(models) or any(describe_value(lm) != model for model in descriptions):
            raise SpecError(
                f"{called(program)}: its predictor {name} asks {lm.model} (by set_lm), which is not the run's model: "
                "give that LM as model=, or use medexam.Evaluate, where a module may ask any model"
            )
    copy = program.deepcopy()
    for _, part in copy.named_predictors():
        part.lm = None
    return copy


def set_model(program: dspy.Module) -> Any:
    """Return the one LM that all predictors of a module were given by `set_lm`; None if there is none."""
    models = [part.lm for _, part in program.named_predictors()]
    if not models or any(lm is None or describe_value(lm) != describe_value(models[0]) for lm in models):
        return None
    return models[0]


def _cell(name: str, calls: ExampleCalls, lm: Any, identity: Mapping[str, Any], folder: RunFolder) -> CellSpec:
    kind = name_object(calls.program, called(calls.program), digest_part(identity["program"]))
    parts = {
        "name": name,
        "dataset": {"kind": EXAMPLES, "name": name, "path": (folder.path / EXAMPLES_FILE).absolute()},
        "model": {
            **model_part(lm, priced=calls.priced and calls.price is None),
            **({} if calls.price is None else {"price": calls.price}),
        },
        "program": {"kind": kind},
    }
    return validate(CellSpec, parts)


def _write_examples(folder: RunFolder, records: Sequence[ExampleRecord]) -> None:
    """Write the examples that the folder does not hold yet beside those that it does."""
    path = folder.path / EXAMPLES_FILE
    stored = read_examples(path) if path.exists() else {}
    merged = {**stored, **{record.key: record for record in records}}
    if len(merged) > len(stored):
        folder.write_text(EXAMPLES_FILE, "".join(record.to_line() for record in merged.values()))
