"""From Python objects to a planned run of examples: its folder, its identity, and which examples are pending."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import dspy

from medexam.datasets.examples import EXAMPLES_FILE, ExampleRecord, build_example_set, read_examples
from medexam.errors import DatasetError, SpecError
from medexam.experiments.evaluate.asking import ExampleCalls, ExampleProgram
from medexam.experiments.evaluate.identity import (
    describe_part,
    describe_value,
    digest_part,
    model_settings,
)
from medexam.experiments.plan.cells import Plan, PlannedCell, take_stock
from medexam.experiments.plan.lending import describe_lent, with_lender
from medexam.experiments.store.environment import list_prices
from medexam.experiments.store.run_folder import RunFolder
from medexam.measures import find_benchmark
from medexam.plugins import name_object
from medexam.programs.lm import EngineLM
from medexam.specs import CellSpec, ModelSpec
from medexam.specs.dataset import EXAMPLES
from medexam.specs.identity import READER_VERSION, digest
from medexam.specs.validation import validate

_SETTINGS = ("adapter", "rm", "interpreter_factory", "allow_tool_async_sync_conversion")
"""What `dspy.configure` may say, beside the model, that answers depend on."""


def plan_evaluation(
    name: str,
    calls: ExampleCalls,
    lm: Any,
    devset: Sequence[dspy.Example],
    *,
    runs_dir: Path,
    fresh: bool,
    price: Literal["list"] | tuple[float, float] | None,
) -> tuple[Plan, tuple[str, ...]]:
    """Plan what evaluating would do, write the examples into its folder, and return their keys, which `calls` learns.

    The last run of the same name, module, model and metric is continued, unless `fresh`. `price` is in dollars per
    million prompt and completion tokens, `list` litellm's, None not known. Raises `RunBusyError` if
    another process writes it.
    """
    records = _make_records(devset)
    settings = {name: dspy.settings.get(name) for name in _SETTINGS}
    identity = {
        "program": describe_part(calls.program),
        "metric": describe_part(calls.metric),
        "model": describe_value(lm),
        "settings": {name: describe_value(value) for name, value in settings.items() if value is not None},
        "failure_score": calls.failure_score,
        "dspy": dspy.__version__,
        "reader_version": READER_VERSION,
    }
    model = getattr(lm, "model", "").rsplit("/", 1)[-1] or "own_models"
    run_digest = digest(identity)
    folder = RunFolder.last_or_new([name, model, called(calls.program)], run_digest, runs_dir, fresh=fresh)
    folder = replace(folder, spec_digest=run_digest)
    folder.create()
    path = folder.path / EXAMPLES_FILE
    by_key = {record.key: record for record in records}
    with folder.locked():
        stored = read_examples(path) if path.exists() else {}
        if by_key.keys() - stored.keys():
            folder.write(EXAMPLES_FILE, "".join(record.to_line() for record in (stored | by_key).values()))
    priced = {"price": price} if isinstance(price, tuple) else {}
    cell = validate(
        CellSpec,
        {
            "name": name,
            "dataset": {"kind": EXAMPLES, "name": name, "path": path.absolute()},
            "model": {**model_part(lm, priced=price == "list"), **priced},
            "program": {"kind": name_object(calls.program, called(calls.program), identity["program"]["digest"])},
        },
    )
    items = build_example_set(cell.dataset, by_key.values(), "")
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
        experiment_digest=digest({"name": name, "cells": [run_digest]}),
    )
    planned = planned if fresh else with_lender(planned)
    plan = Plan(
        name=name,
        cells=(planned,),
        runs_dir=runs_dir,
        news=tuple(filter(None, [describe_lent(planned)])),
        fresh=fresh,
        ways_out="or start over with fresh=True",
    )
    return plan, tuple(calls.examples)


def _make_records(devset: Sequence[dspy.Example]) -> list[ExampleRecord]:
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
        key = digest_part(content, 16)
        times[key] += 1
        records.append(ExampleRecord(key if times[key] == 1 else f"{key}-{times[key]}", **content))
    return records


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
    has_place = lm.kwargs.get("api_base") or lm.kwargs.get("base_url")
    prices = list_prices(ModelSpec(engine="litellm", name=lm.model)) if priced and not has_place else None
    return {
        "engine": name_object(lm, type(lm).__name__, digest_part(describe_value(lm))),
        "name": lm.model,
        "args": settings,
        "seed": settings.get("seed"),
        "temperature": temperature if is_usual else None,
        # DSPy renames the budget for OpenAI's models that think.
        "max_tokens": settings.get("max_tokens") or settings.get("max_completion_tokens") or 0,
        **({} if prices is None else {"price": (prices["prompt_usd"] * 1e6, prices["completion_usd"] * 1e6)}),
    }


def program_part(program: Any) -> dict[str, Any]:
    """Return the `program` part of a spec for a module that a script made, and for the adapter of `dspy.configure`."""
    part = {"kind": name_object(program, called(program), describe_part(program)["digest"])}
    if (adapter := dspy.settings.adapter) is not None:
        part["adapter"] = name_object(adapter, type(adapter).__name__, digest_part(describe_value(adapter)))
    return part


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
