"""A DSPy signature that a step asks: called with the fields of a flow beside those of a question."""

import math
from typing import Any

import dspy
from pydantic import ValidationError

from medexam.errors import SpecError
from medexam.plugins import load_object
from medexam.predictions import OptionScores
from medexam.programs.fields import Asked
from medexam.programs.guided import OptionProbabilities
from medexam.programs.kept import Calls
from medexam.programs.loading import typed_example
from medexam.programs.own import OwnProgram
from medexam.programs.program_output import ProgramOutput
from medexam.questions import Language, Question
from medexam.retrievers.base import Hit
from medexam.specs.names import PROGRAMS
from medexam.specs.programs.asking_steps import AskStep, UseStep, read_step_words

REACT_TURNS = 4
"""How often `by: react` looks up before it answers, at most."""


class AskedSignature(OwnProgram):
    """A predictor whose outputs are fields; a prediction carries them as `fields`, None where a reply did not parse."""

    def calls_for(self, question: Any) -> int:
        """Count the most: where values are weighed, each output is a call, and what looks up asks again."""
        if isinstance(self.module, OptionProbabilities):
            return sum(len(predictor.signature.output_fields) for predictor in self.module.predictors())
        if isinstance(self.module, dspy.ReAct):
            return super().calls_for(question) + REACT_TURNS - 1
        return super().calls_for(question)

    def _prediction(self, question: Asked, hits: list[Hit], outputs: list[Any], calls: Calls) -> ProgramOutput:
        """Build the prediction, which holds an `answer` only if the signature has one."""
        values = dict(outputs[0].items()) if outputs and isinstance(outputs[0], dspy.Prediction) else None
        if values is not None and "answer" not in values:
            outputs = [dspy.Prediction(**values, answer=None)]
        outcome = super()._prediction(question, hits, outputs, calls)
        if values is None:
            return outcome
        answer = outcome.answer if isinstance(question, Question) else outcome.text
        outcome["fields"] = {**values, **({"answer": answer} if "answer" in values else {})}
        shares = values.get("probabilities", {}).get("answer")
        outcome["scores"] = _scores(question, shares) if shares else None
        return outcome


def _scores(question: Asked, shares: dict[str, float]) -> OptionScores | None:
    """Return how likely each option is; None if the values are no options."""
    if not isinstance(question, Question) or set(shares) != set(map(str, question.option_numbers)):
        return None
    scores = {number: math.log(max(shares[str(number)], 1e-300)) for number in question.option_numbers}
    return OptionScores(
        option_scores=scores,
        score_unit="nats",
        score_norm="sum",
        read_by="choices",
        read_why="the values of the signature's answer",
    )


def make_asking_module(step: AskStep, language: Language, *, looks_up: bool) -> dspy.Module:
    """Make what asks a step's signature, with its instructions and demonstrations.

    Raises `SpecError` if the signature is none, or a file cannot be read.
    """
    words = read_step_words(step, language)
    try:
        signature = dspy.Signature(step.ask, words.get("instructions"))
    except Exception as error:
        raise SpecError(f"ask {step.ask!r}: {error}") from None
    module = _make_module(step, signature, looks_up=looks_up)
    demos = words.get("demos", [])
    names = {name for predictor in module.predictors() for name in predictor.signature.fields}
    if unknown := {name for demo in demos for name in demo} - names:
        raise SpecError(f"demos: {', '.join(sorted(unknown))}: the signature has {', '.join(signature.fields)} alone")
    for predictor in module.predictors() if demos else ():
        try:
            predictor.demos = [typed_example(predictor.signature, demo) for demo in demos]
        except ValidationError as error:
            raise SpecError(f"demos: {error.errors()[0]['input']!r}: {error.errors()[0]['msg']}") from None
    return module


def _make_module(step: AskStep, signature: type[dspy.Signature], *, looks_up: bool) -> dspy.Module:
    match step.by:
        case "predict":
            return dspy.Predict(signature)
        case "chain_of_thought":
            return dspy.ChainOfThought(signature)
        case "likelihood":
            return OptionProbabilities(signature)
        case "react":
            return dspy.ReAct(signature, tools=[_search] if looks_up else [], max_iters=REACT_TURNS)
    make = load_object(step.by, PROGRAMS)
    try:
        module = make(signature)
    except Exception as error:
        raise SpecError(f"by {step.by}: making it failed: {type(error).__name__}: {error}") from error
    if not isinstance(module, dspy.Module):
        raise SpecError(f"by {step.by} makes {type(module).__name__}, not a dspy.Module: name the class of a module")
    return module


def _search(query: str) -> str:
    """Passages about a query."""
    return "\n\n".join(dspy.Retrieve(k=2)(query).passages)


def instruct(program: dspy.Module, step: UseStep, language: Language) -> None:
    """Replace the instructions of a used program; raises `SpecError` unless it has one predictor."""
    predictors = program.predictors()
    if len(predictors) != 1:
        raise SpecError(
            f"instructions: {step.use.kind} has {len(predictors)} prompts of its own: leave instructions out"
        )
    predictors[0].signature = predictors[0].signature.with_instructions(read_step_words(step, language)["instructions"])
