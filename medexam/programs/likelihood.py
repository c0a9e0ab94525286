"""Log-probability answer selection (the paper's section 3.2.3): the model writes nothing, its likeliest option counts.

Of options with equal scores the first in the exam's order is taken, and how many share the best score is kept.
"""

import math
from collections.abc import Sequence

import dspy

from medexam.model_calls import Continuation, ContinuationLogprobs
from medexam.predictions import OptionScores, normalise_scores
from medexam.programs.base import ExamProgram
from medexam.programs.program_output import ProgramOutput
from medexam.programs.wrapping import Order, orders_of, shown_in
from medexam.questions import Question
from medexam.signatures.likelihood import LikelihoodAdapter, WeighOptions, option_texts
from medexam.signatures.prompts import LikelihoodWords
from medexam.specs.programs.likelihood import LikelihoodSpec, ScoreNorm

UNITS: dict[ScoreNorm, str] = {
    "token_mean": "nats per token",
    "sum": "nats",
    "byte": "nats per byte",
    "character": "nats per character",
    "pmi": "nats",
    "min_k": "nats per token",
}
"""The unit of a score under each norm."""
MIN_K = 0.2
"""Share of an option's tokens that `min_k` looks at, rounded up."""


class OptionLikelihood(ExamProgram):
    """Take the option that the model finds likeliest as what follows the question.

    A prediction carries `scores` besides; `answer` is None where the best option's share of the probability is below
    the spec's `abstain_below`.
    """

    def __init__(self, spec: LikelihoodSpec, words: LikelihoodWords) -> None:
        adapter = LikelihoodAdapter(
            read=spec.read,
            read_by=spec.read_by,
            chat_template=spec.chat_template,
            shows_options=spec.shows_options,
        )
        super().__init__(adapter)
        self.spec = spec
        self.weigh = dspy.Predict(WeighOptions.with_instructions(words.context))
        premise = words.premise
        self.weigh_alone = None if premise is None else dspy.Predict(WeighOptions.with_instructions(premise))

    def calls_for(self, question: Question) -> int:
        """Count one call for each order of the options, and one more where they are also read without the question."""
        return len(orders_of(question, self.spec.orders)) + (self.weigh_alone is not None)

    async def answer(self, question: Question) -> ProgramOutput:
        """Read the options in each order that is wanted, then choose."""
        premise_reading: ContinuationLogprobs | None = None
        if self.weigh_alone is not None:
            prediction = await self.ask(self.weigh_alone, question=question)
            premise_reading = prediction.reading
        readings: list[ContinuationLogprobs] = []
        orders = orders_of(question, self.spec.orders)
        for order in orders:
            prediction = await self.ask(self.weigh, question=shown_in(question, order))
            readings.append(prediction.reading)
        scores = self._scores(question, orders, readings, premise_reading)
        answer = self._choose(scores.option_scores)
        outcome_orders = None if self.spec.orders == "given" else tuple(orders)
        return ProgramOutput(answer=answer, rationale=None, scores=scores, orders=outcome_orders)

    def _choose(self, scores: dict[int, float]) -> int | None:
        """Choose the best option, the first of equal ones; None where its share of the probability is too small."""
        least_share = self.spec.abstain_below
        if least_share is not None and max(normalise_scores(scores).values()) < least_share:
            return None
        return max(scores, key=scores.__getitem__)

    def _scores(
        self,
        question: Question,
        orders: Sequence[Order],
        readings: Sequence[ContinuationLogprobs],
        premise_reading: ContinuationLogprobs | None,
    ) -> OptionScores:
        texts, numbers = option_texts(self.spec.read, question), question.option_numbers
        premises = premise_reading.continuations if premise_reading else [None] * len(texts)
        rows = []
        for order, reading in zip(orders, readings, strict=True):
            # The numbers stay where they are while the options move on.
            places = map(numbers.index, order) if self.spec.read == "option_text" else range(len(texts))
            rows.append(
                tuple(
                    score_option(continuation, texts[place], self.spec.norm, premises[place])
                    for place, continuation in zip(places, reading.continuations, strict=True)
                )
            )
        has_orders = self.spec.orders != "given"
        scores = average_orders(orders, rows) if has_orders else dict(zip(numbers, rows[0], strict=True))
        masses = [reading.mass for reading in readings] if self.spec.read == "label" else []
        label_masses = [mass for mass in masses if mass is not None]
        return OptionScores(
            option_scores={number: scores[number] for number in numbers},
            score_unit="nats" if has_orders else UNITS[self.spec.norm],
            score_norm=self.spec.norm,
            label_mass=math.fsum(label_masses) / len(label_masses) if label_masses else None,
            order_scores=tuple(rows) if has_orders else None,
            read_by=readings[-1].read_by,
            read_why=readings[-1].why,
        )


def score_option(continuation: Continuation, text: str, norm: ScoreNorm, premise: Continuation | None) -> float:
    """Score an option whose words are `text`, in the unit that `UNITS` names for the norm.

    `premise` is its reading without the question, for `pmi` (Holtzman et al. 2021, domain conditional PMI). `min_k` is
    the mean over the least likely fifth of the tokens (Shi et al. 2024, "Detecting pretraining data from large language
    models"). The length in bytes (UTF-8) or characters is that of the words, without the space before them; no words
    count as one.
    """
    match norm:
        case "token_mean":
            return continuation.total / len(continuation.tokens)
        case "sum":
            return continuation.total
        case "byte":
            return continuation.total / max(1, len(text.encode("utf-8")))
        case "character":
            return continuation.total / max(1, len(text))
        case "pmi":
            if premise is None:
                raise ValueError("pmi needs the reading without the question")
            return continuation.total - premise.total
        case "min_k":
            least_logprobs = sorted(continuation.logprobs)[: math.ceil(MIN_K * len(continuation.tokens))]
            return math.fsum(least_logprobs) / len(least_logprobs)


def average_orders(orders: Sequence[Order], rows: Sequence[Sequence[float]]) -> dict[int, float]:
    """Return printed number of each option -> the log of its mean probability over the orders, nats.

    Row `r` holds the scores of order `r`, in the order in which the options were shown.
    """
    total = dict.fromkeys(orders[0], 0.0)
    for order, row in zip(orders, rows, strict=True):
        for number, chance in normalise_scores(dict(zip(order, row, strict=True))).items():
            total[number] += chance
    return {number: math.log(max(chance / len(orders), 1e-300)) for number, chance in total.items()}
