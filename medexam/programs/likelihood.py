"""Log-probability answer selection (the paper's section 3.2.3): the model writes nothing, its likeliest option counts.

Of options with equal scores the first in the exam's order is taken, and how many share the best score is kept.
"""

import math
from collections.abc import Sequence
from string import Template

import dspy

from medexam.model_calls import Continuation, ContinuationLogprobs, ContinuationRequest
from medexam.predictions.prediction import normalise_scores
from medexam.programs.base import WAY, ExamProgram, user_turn
from medexam.programs.wrapping import Order, orders_of, shown_in
from medexam.questions import Question
from medexam.signatures.word_files import Words
from medexam.specs.programs.words import ScoreNorm, WordsSpec

_MIN_K = 0.2
"""Share of an option's tokens that `min_k` looks at, rounded up."""
_UNITS: dict[ScoreNorm, str] = {
    "token_mean": "nats per token",
    "byte": "nats per byte",
    "character": "nats per character",
    "min_k": "nats per token",
}
"""The unit of a score under each norm; any other is in nats."""


class OptionLikelihood(ExamProgram):
    """Take the option that the model finds likeliest as what follows the question.

    A prediction carries `option_scores` besides; `answer` is None where the best option's share of the probability is
    below the spec's `abstain_below`.
    """

    def __init__(self, spec: WordsSpec, words: Words) -> None:
        super().__init__()
        self.spec = spec
        context, *premise = words.parts.values()
        self.weigh = dspy.Predict(dspy.Signature("question -> reading", context))
        self.weigh_alone = dspy.Predict(dspy.Signature("question -> reading", premise[0])) if premise else None

    def calls_for(self, question: Question) -> int:
        """Count one call for each order of the options, and one more where they are also read without the question."""
        return len(orders_of(question, self.spec.orders)) + (self.weigh_alone is not None)

    async def aforward(self, question: Question) -> dspy.Prediction:
        """Read the options in each order that is wanted, then choose the best, the first of equal ones."""
        spec, numbers = self.spec, question.option_numbers
        premises: Sequence[Continuation | None] = [None] * len(numbers)
        if self.weigh_alone is not None:
            premises = (await self._weigh(self.weigh_alone, question)).continuations
        orders = orders_of(question, spec.orders)
        readings = [await self._weigh(self.weigh, shown_in(question, order)) for order in orders]
        rows = []
        for order, reading in zip(orders, readings, strict=True):
            # The numbers stay where they are while the options move on.
            places = range(len(numbers)) if spec.read == "label" else [*map(numbers.index, order)]
            texts = [str(numbers[place]) if spec.read == "label" else question.options[place].text for place in places]
            read = zip(reading.continuations, texts, places, strict=True)
            rows.append(tuple(score_option(one, text, spec.norm, premises[place]) for one, text, place in read))
        has_orders = spec.orders != "given"
        by_number = average_orders(orders, rows) if has_orders else dict(zip(numbers, rows[0], strict=True))
        masses = [reading.mass for reading in readings if spec.read == "label" and reading.mass is not None]
        option_scores = {number: by_number[number] for number in numbers}
        scores = {
            "option_scores": option_scores,
            "score_unit": "nats" if has_orders else _UNITS.get(spec.norm, "nats"),
            "score_norm": spec.norm,
            "label_mass": math.fsum(masses) / len(masses) if masses else None,
            "order_scores": tuple(rows) if has_orders else None,
            "read_by": readings[-1].read_by,
            "read_why": readings[-1].why,
        }
        answer: int | None = max(option_scores, key=option_scores.__getitem__)
        if spec.abstain_below is not None:
            share = max(normalise_scores(option_scores).values())
            answer = None if share < spec.abstain_below else answer
        return dspy.Prediction(answer=answer, **scores, orders=tuple(orders) if has_orders else None)

    async def _weigh(self, predictor: dspy.Predict, question: Question) -> ContinuationLogprobs:
        """Read the options behind a space where the context is plain text that does not end in white space, and at the
        very beginning of the assistant's turn where it is a dialogue; nothing is sampled, so no setting matters.
        """
        spec, question = self.spec, WAY.get().inputs.get("question", question)
        text = user_turn(question.printed if spec.shows_options else question.asked)["content"]
        context = Template(predictor.signature.instructions).substitute(question=text)
        lead = "" if spec.chat_template or context[-1:].isspace() else " "
        texts = [f"{lead}{option.number if spec.read == 'label' else option.text}" for option in question.options]
        is_label = spec.read == "label"
        request = ContinuationRequest(
            texts=tuple(texts), read_by=spec.read_by, given_opening=is_label, template=spec.chat_template
        )
        turns = [{"role": "user", "content": context}]
        generation = await self.ask(predictor, turns, sampling={}, continuations=request)
        return generation.logprobs  # type: ignore[return-value]


def score_option(continuation: Continuation, text: str, norm: ScoreNorm, premise: Continuation | None) -> float:
    """Score an option whose words are `text`.

    `premise` is its reading without the question, for `pmi` (Holtzman et al. 2021, domain conditional PMI). `min_k` is
    the mean over the least likely fifth of the tokens (Shi et al. 2024, "Detecting pretraining data from large language
    models"). The length in bytes (UTF-8) or characters is that of the words, without the space before them; no words
    count as one.
    """
    least_logprobs = sorted(continuation.logprobs)[: math.ceil(_MIN_K * len(continuation.tokens))]
    lengths = {
        "token_mean": len(continuation.tokens),
        "byte": max(1, len(text.encode("utf-8"))),
        "character": max(1, len(text)),
    }
    if norm == "min_k":
        return math.fsum(least_logprobs) / len(least_logprobs)
    return (continuation.total - (premise.total if premise else 0.0)) / lengths.get(norm, 1)


def average_orders(orders: Sequence[Order], rows: Sequence[Sequence[float]]) -> dict[int, float]:
    """Return printed number of each option -> the log of its mean probability over the orders, nats.

    Row `r` holds the scores of order `r`, in the order in which the options were shown.
    """
    total = dict.fromkeys(orders[0], 0.0)
    for order, row in zip(orders, rows, strict=True):
        for number, chance in normalise_scores(dict(zip(order, row, strict=True))).items():
            total[number] += chance
    return {number: math.log(max(chance / len(orders), 1e-300)) for number, chance in total.items()}
