"""Log-probability answer selection (the paper's section 3.2.3): the model writes nothing, its likeliest option counts.

Of options with equal scores the first in the exam's order is taken, and how many share the best score is kept.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import dspy

from medexam.continuations import Continuation, ContinuationLogprobs
from medexam.predictions import Prediction, normalise_scores
from medexam.programs.base import Call, ExamProgram, Steps
from medexam.programs.orders import orders_of, shown_in
from medexam.questions import Question
from medexam.signatures import LikelihoodAdapter, LikelihoodWords, WeighOptions, option_texts
from medexam.specs import LikelihoodSpec
from medexam.specs.programs.likelihood import ScoreNorm

UNITS: dict[ScoreNorm, str] = {
    "token_mean": "nats per token",
    "sum": "nats",
    "byte": "nats per byte",
    "character": "nats per character",
    "pmi": "nats",
}
"""The unit of a score under each norm."""


@dataclass(frozen=True)
class OptionScores:
    """The scores of a question's options; the fields are those of `medexam.predictions.Prediction`."""

    option_scores: dict[int, float]
    score_unit: str
    score_norm: str
    tied: int
    label_mass: float | None
    order_scores: tuple[tuple[float, ...], ...] | None
    read_by: str
    read_why: str


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
        """One call for each order of the options, and one more where they are also read without the question."""
        return len(orders_of(question, self.spec.orders)) + (self.weigh_alone is not None)

    def steps(self, question: Question) -> Steps:
        """Read the options in each order that is wanted, then choose."""
        generations = []
        alone: ContinuationLogprobs | None = None
        if self.weigh_alone is not None:
            said = yield Call(self.weigh_alone, {"question": question})
            generations.append(said.generation)
            alone = said.reading
        readings: list[ContinuationLogprobs] = []
        for order in orders_of(question, self.spec.orders):
            said = yield Call(self.weigh, {"question": shown_in(question, order)})
            generations.append(said.generation)
            readings.append(said.reading)
        scores = self._scores(question, readings, alone)
        answer = self._choose(scores.option_scores)
        return dspy.Prediction(answer=answer, rationale=None, generations=generations, scores=scores)

    def read_again(self, question: Question, stored: Prediction) -> dspy.Prediction | None:  # noqa: ARG002
        """The option that the stored scores choose."""
        if stored.option_scores is None:
            return None
        return dspy.Prediction(answer=self._choose(stored.option_scores), rationale=None)

    def _choose(self, scores: dict[int, float]) -> int | None:
        """The best option, the first of equal ones; None where its share of the probability is too small."""
        least = self.spec.abstain_below
        if least is not None and max(normalise_scores(scores).values()) < least:
            return None
        return max(scores, key=scores.__getitem__)

    def _scores(
        self, question: Question, readings: Sequence[ContinuationLogprobs], alone: ContinuationLogprobs | None
    ) -> OptionScores:
        texts = option_texts(self.spec.read, question)
        premises = alone.continuations if alone else [None] * len(texts)
        orders = []
        for turn, reading in enumerate(readings):
            places = [(turn + place) % len(texts) for place in range(len(texts))]
            # The numbers stay where they are while the options move on.
            of = places if self.spec.read == "option_text" else range(len(texts))
            orders.append(
                tuple(
                    score(continuation, texts[at], self.spec.norm, premises[at])
                    for at, continuation in zip(of, reading.continuations, strict=True)
                )
            )
        cyclic = self.spec.orders == "cyclic"
        scores = dict(zip(question.option_numbers, average_orders(orders) if cyclic else orders[0], strict=True))
        masses = [reading.mass for reading in readings] if self.spec.read == "label" else []
        known = [mass for mass in masses if mass is not None]
        return OptionScores(
            option_scores=scores,
            score_unit="nats" if cyclic else UNITS[self.spec.norm],
            score_norm=self.spec.norm,
            tied=list(scores.values()).count(max(scores.values())),
            label_mass=math.fsum(known) / len(known) if known else None,
            order_scores=tuple(orders) if cyclic else None,
            read_by=readings[-1].read_by,
            read_why=readings[-1].why,
        )


def score(continuation: Continuation, text: str, norm: ScoreNorm, alone: Continuation | None) -> float:
    """The score of an option whose words are `text`, in the unit that `UNITS` names for the norm.

    `alone` is its reading without the question, for `pmi` (Holtzman et al. 2021, domain conditional PMI). The length in
    bytes (UTF-8) or characters is that of the words, without the space before them; no words count as one.
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
            if alone is None:
                raise ValueError("pmi needs the reading without the question")
            return continuation.total - alone.total


def average_orders(orders: Sequence[Sequence[float]]) -> list[float]:
    """The log of each option's mean probability over the cyclic orders, in the exam's order, nats.

    Row `r` of `orders` holds the scores in the order in which the options were shown, first that at place `r`.
    """
    count = len(orders)
    total = [0.0] * count
    for turn, row in enumerate(orders):
        for place, chance in normalise_scores(dict(enumerate(row))).items():
            total[(turn + place) % count] += chance
    return [math.log(max(chance / count, 1e-300)) for chance in total]
