"""From a program's spec to the live program."""

from typing import assert_never

import dspy

from medexam.programs.asking import DIRECT_TOKENS, REASONING_TOKENS, ChainOfThought, DirectAnswer
from medexam.programs.controls import BlindChoice, LongestChoice, RandomChoice
from medexam.programs.likelihood import OptionLikelihood
from medexam.questions import Language
from medexam.signatures import ExamAdapter, load_likelihood_words, load_prompt
from medexam.specs import (
    BlindSpec,
    ChainOfThoughtSpec,
    FewShotSpec,
    LikelihoodSpec,
    LongestSpec,
    ProgramSpec,
    RandomSpec,
    ZeroShotSpec,
)


def build_program(spec: ProgramSpec, language: Language, *, max_tokens: int | None = None) -> dspy.Module:
    """A DSPy module that answers questions in `language` as `spec` says.

    `max_tokens` is the model's own budget for a reply, used where the program's spec has none; None takes the
    program's default. Raises `SpecError` when a prompt file has no words for the program.
    """
    match spec:
        case ZeroShotSpec() | FewShotSpec() | ChainOfThoughtSpec():
            prompt = load_prompt(spec, language)
            adapter = ExamAdapter(spec.answer_format, spec.answer_form)
            budget = spec.max_tokens or max_tokens
            if isinstance(spec, ChainOfThoughtSpec):
                return ChainOfThought(prompt, adapter, budget or REASONING_TOKENS)
            return DirectAnswer(prompt, adapter, budget or DIRECT_TOKENS)
        case LikelihoodSpec():
            return OptionLikelihood(spec, load_likelihood_words(spec, language))
        case RandomSpec():
            return RandomChoice(spec.seed)
        case BlindSpec():
            return BlindChoice(spec.option)
        case LongestSpec():
            return LongestChoice()
        case _:
            assert_never(spec)
