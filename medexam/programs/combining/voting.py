"""Self-consistency: a question is asked several times, and the commonest legal answer is taken.

Wang et al. (2023), "Self-Consistency Improves Chain of Thought Reasoning in Language Models". The prompt is the same
each time, so a server with a prefix cache reads it once.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import dspy
from dspy.utils.exceptions import ContextWindowExceededError

from medexam.predictions import Prediction, Reading
from medexam.programs.base import Call, ExamProgram, Steps, WrappingProgram
from medexam.programs.likelihood import OptionScores
from medexam.questions import Question

NO_VOTE = math.log(1e-9)
"""The score of an option without a vote: its share of the probability is 0 to nine decimals."""


class Voting(WrappingProgram):
    """A program that is asked `samples` times, each under a seed of its own.

    A prediction carries `votes`, the answer of each reply in order, and `scores`, the log of each option's share of the
    legal answers; None if there is no legal answer. Of options with as many votes, the likeliest on average is taken if
    the program weighs options, else the one that was answered first.
    """

    def __init__(self, program: ExamProgram, samples: int) -> None:
        super().__init__(program)
        self.samples = samples

    def calls_for(self, question: Question) -> int:
        """As many for each reply as the program's own."""
        return self.samples * self.program.calls_for(question)

    def steps(self, question: Question) -> Steps:
        """The program's own steps for each reply: the first under the model's seed, the others under the next ones.

        If one request brings several replies to a prompt, all are asked for at once as long as they are asked the same.
        """
        runs = [self.program.steps(question) for _ in range(self.samples)]
        said: list[Call | dspy.Prediction] = [next(run) for run in runs]
        while _shares_prompt(said):
            try:
                replies = yield replace(said[0], samples=self.samples)
            except ContextWindowExceededError as error:
                said = [run.throw(error) for run in runs]
                continue
            said = [_step(run, replies.completions[place]) for place, run in enumerate(runs)]
            break
        answers = []
        for number, (run, begun) in enumerate(zip(runs, said, strict=True)):
            answers.append((yield from _finish(run, begun, number)))
        return self._count(question, answers)

    def read_again(self, question: Question, stored: Prediction, reading: Reading = "strict") -> dspy.Prediction | None:
        """The votes in the stored replies, counted anew."""
        if stored.generations is None or len(stored.generations) % self.samples:
            return None
        each = len(stored.generations) // self.samples
        said = []
        for reply in stored.generations[each - 1 :: each]:
            one = stored.model_copy(update={"reply": reply.text, "rationale": reply.text if each > 1 else None})
            read = self.program.read_again(question, one, reading)
            if read is None:
                return None
            said.append(read)
        answer = winner(said)
        rationale = next((one.rationale for one in said if one.answer == answer), None)
        return dspy.Prediction(answer=answer, rationale=rationale, votes=tuple(one.answer for one in said))

    def _count(self, question: Question, said: Sequence[dspy.Prediction]) -> dspy.Prediction:
        answer = winner(said)
        told = next((one for one in said if one.answer == answer), said[0])
        own = {
            "answer": answer,
            "scores": shares(question, said),
            "votes": tuple(one.answer for one in said),
            "told": told.generations[-1],
            "traced": True,
            "generations": [generation for one in said for generation in one.generations],
        }
        return dspy.Prediction(**{**told.toDict(), **own})


def _shares_prompt(calls: Sequence[Call | dspy.Prediction]) -> bool:
    """Whether all are the same call, of one of DSPy's own predictors, and its model reads a prompt once for all."""
    first, *others = calls
    if not isinstance(first, Call) or not isinstance(first.predictor, dspy.Predict):
        return False
    lm = first.predictor.lm or dspy.settings.lm
    return getattr(lm, "shares_prompts", False) and all(call == first for call in others)


def _step(run: Steps, reply: dspy.Prediction) -> Call | dspy.Prediction:
    """What a program says to a reply: its next call, or its answer."""
    try:
        return run.send(reply)
    except StopIteration as finished:
        answer: dspy.Prediction = finished.value
        return answer


def _finish(run: Steps, said: Call | dspy.Prediction, number: int) -> Steps:
    """The steps of one reply from a call on to its answer, each under its own seed."""
    while isinstance(said, Call):
        try:
            reply = yield replace(said, seeds_later=number)
        except ContextWindowExceededError as error:
            said = run.throw(error)
            continue
        said = _step(run, reply)
    return said


def winner(said: Sequence[dspy.Prediction]) -> int | None:
    """The commonest answer; None if there is none. Of equals the likeliest if all have `scores`, else the first."""
    votes = Counter(one.answer for one in said if one.answer is not None)
    if not votes:
        return None
    tied = [number for number, count in votes.items() if count == max(votes.values())]
    weighed: list[OptionScores] = [one.scores for one in said if one.get("scores") is not None]
    first: int = tied[0]
    if len(tied) == 1 or len(weighed) < len(said):
        return first
    likeliest: int = max(tied, key=lambda number: math.fsum(scores.option_scores[number] for scores in weighed))
    return likeliest


def shares(question: Question, said: Sequence[dspy.Prediction]) -> OptionScores | None:
    """The log of each option's share of the legal answers; None if there is none."""
    votes = Counter(one.answer for one in said if one.answer is not None)
    if not votes:
        return None
    whole = votes.total()
    shares = {
        number: math.log(votes[number] / whole) if votes[number] else NO_VOTE for number in question.option_numbers
    }
    return OptionScores(
        option_scores=shares,
        score_unit="log of the share of votes",
        score_norm="votes",
        tied=list(votes.values()).count(max(votes.values())),
        label_mass=None,
        order_scores=None,
        read_by="votes",
        read_why=f"{whole} of {len(said)} replies hold a legal answer",
    )
