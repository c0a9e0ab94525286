"""Iterative retrieval: the model writes queries from what it has read, and answers when it has read enough.

Xiong et al. (2024), "Improving Retrieval-Augmented Generation in Medicine with Iterative Follow-up Questions"
(i-MedRAG): the first queries come from the question alone, each is answered from its own passages, and later queries
see the earlier ones with their answers.
"""

import re
from collections.abc import Generator, Sequence

import dspy

from medexam.predictions import FollowUp, RetrievedPassage
from medexam.programs.base import AskingProgram, Call, Steps
from medexam.programs.retrieval.passages import BehindText, join_passages
from medexam.programs.retrieval.searching import LookUp, PassageSearch
from medexam.programs.retrieval.side_questions import SideQuestion
from medexam.questions import Question
from medexam.retrievers.base import Hit
from medexam.signatures import Generation, TaskWords, fill
from medexam.specs import IterativeRetrievalSpec
from medexam.tasks import Task

QUERY_TOKENS = 96
"""Budget of a round's queries."""
NOTE_TOKENS = 96
"""Budget of a query's brief answer."""
_LONGEST = 300
"""Characters of a query; the rest of its line is left out."""
_MARK = re.compile(r"^\s*(?:[-*\u2022]|\(?\d+[.):]|\w+\s*\d*\s*:)\s*")
"""A bullet, a number, or a word such as `Query 1:` before a query."""


class IterativeRetrieval(BehindText):
    """A program that is asked behind what the model's own queries found.

    A prediction carries `rounds`, the queries of each round with their passages and answers, and `hits`, all passages
    in the order in which they were found, each once. Rounds end early where the model writes no query that is new.
    """

    replayed = True

    def __init__(
        self, program: AskingProgram, spec: IterativeRetrievalSpec, words: TaskWords, search: PassageSearch
    ) -> None:
        super().__init__(program)
        self.spec = spec
        self.first = SideQuestion(words, "first_queries", QUERY_TOKENS)
        self.further = SideQuestion(words, "further_queries", QUERY_TOKENS)
        self.read = SideQuestion(words, "answer_query", NOTE_TOKENS) if spec.keep == "answers" else None
        self.look_up = LookUp(search, spec.k)
        self._note = words.groups.get("note", "")

    def calls_for(self, question: Question) -> int:
        """Count the most that it may take: each round's queries, an answer to each, and the program's own."""
        calls_per_round = 1 + (self.spec.queries if self.read is not None else 0)
        return self.spec.rounds * calls_per_round + self.program.calls_for(question)

    def steps(self, question: Question) -> Steps:
        """Yield the rounds, then the program's own steps behind what they found."""
        rounds: list[tuple[FollowUp, ...]] = []
        generations: list[Generation] = []
        hits: dict[str, Hit] = {}
        for _ in range(self.spec.rounds):
            findings = self._known(rounds, hits)
            side_question = self.further if findings else self.first
            prediction = yield from side_question.steps(question.printed, findings, count=self.spec.queries)
            generations.append(prediction.generation)
            earlier_queries = [follow_up.query for follow_ups in rounds for follow_up in follow_ups]
            queries = read_queries(prediction.answer, self.spec.queries, earlier_queries)
            if not queries:
                break
            hits_by_query: list[list[Hit]] = (yield Call(self.look_up, {"queries": queries})).found
            answers = yield from self._answer(queries, hits_by_query, generations)
            for hit in (hit for query_hits in hits_by_query for hit in query_hits):
                hits.setdefault(hit.passage.id, hit)
            rounds.append(tuple(map(_follow_up, queries, hits_by_query, answers)))
        outcome = yield from self.steps_behind(question, self._known(rounds, hits))
        return outcome.copy(
            generations=[*generations, *outcome.generations],
            keeps_replies=True,
            rounds=tuple(rounds),
            hits=list(hits.values()),
        )

    def _answer(
        self, queries: Sequence[str], hits_by_query: Sequence[Sequence[Hit]], generations: list[Generation]
    ) -> Generator[Call, dspy.Prediction, list[str | None]]:
        """Ask for a brief answer to each query from its own passages; None for each where passages are kept instead."""
        if self.read is None:
            return [None] * len(queries)
        answers = []
        for query, hits in zip(queries, hits_by_query, strict=True):
            prediction = yield from self.read.steps(query, join_passages(hits))
            generations.append(prediction.generation)
            answers.append(prediction.answer)
        return answers

    def _known(self, rounds: Sequence[Sequence[FollowUp]], hits: dict[str, Hit]) -> str:
        """Write what was found so far, as later queries and the question see it."""
        if self.read is None:
            return join_passages(list(hits.values()))
        return "\n\n".join(
            fill(self._note, Task("note", "note", "en", follow_up.query, given_answer=follow_up.answer or ""))
            for follow_ups in rounds
            for follow_up in follow_ups
        )


def read_queries(reply: str, count: int, earlier_queries: Sequence[str]) -> list[str]:
    """Read at most `count` queries of a reply, a line each without number or bullet; none of `earlier_queries`."""
    query_keys = {query.casefold() for query in earlier_queries}
    queries: list[str] = []
    for line in reply.splitlines():
        query = _MARK.sub("", line).strip().strip("\"'`*")[:_LONGEST].strip()
        if any(map(str.isalnum, query)) and query.casefold() not in query_keys:
            query_keys.add(query.casefold())
            queries.append(query)
    return queries[:count]


def _follow_up(query: str, hits: Sequence[Hit], answer: str | None) -> FollowUp:
    return FollowUp(query=query, passages=tuple(map(kept_passage, hits)), answer=answer)


def kept_passage(hit: Hit) -> RetrievedPassage:
    """Return what a prediction keeps of a hit."""
    return RetrievedPassage(id=hit.passage.id, source=hit.passage.source, score=hit.score)
