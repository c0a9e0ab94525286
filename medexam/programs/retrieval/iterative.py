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
        """The most that it may take: each round's queries, an answer to each, and the program's own."""
        each = 1 + (self.spec.queries if self.read is not None else 0)
        return self.spec.rounds * each + self.program.calls_for(question)

    def steps(self, question: Question) -> Steps:
        """The rounds, then the program's own steps behind what they found."""
        rounds: list[tuple[FollowUp, ...]] = []
        generations: list[Generation] = []
        hits: dict[str, Hit] = {}
        for _ in range(self.spec.rounds):
            known = self._known(rounds, hits)
            ask = self.further if known else self.first
            written = yield from ask.steps(question.printed, known, count=self.spec.queries)
            generations.append(written.generation)
            before = [one.query for done in rounds for one in done]
            queries = read_queries(written.answer, self.spec.queries, before)
            if not queries:
                break
            found: list[list[Hit]] = (yield Call(self.look_up, {"queries": queries})).found
            answers = yield from self._answer(queries, found, generations)
            for hit in (hit for each in found for hit in each):
                hits.setdefault(hit.passage.id, hit)
            rounds.append(tuple(map(_follow_up, queries, found, answers)))
        said = yield from self.steps_behind(question, self._known(rounds, hits))
        own = {"generations": [*generations, *said.generations], "traced": True}
        return dspy.Prediction(**{**said.toDict(), **own}, rounds=tuple(rounds), hits=list(hits.values()))

    def _answer(
        self, queries: Sequence[str], found: Sequence[Sequence[Hit]], generations: list[Generation]
    ) -> Generator[Call, dspy.Prediction, list[str | None]]:
        """A brief answer to each query from its own passages; None for each where passages are kept instead."""
        if self.read is None:
            return [None] * len(queries)
        answers = []
        for query, hits in zip(queries, found, strict=True):
            said = yield from self.read.steps(query, join_passages(hits))
            generations.append(said.generation)
            answers.append(said.answer)
        return answers

    def _known(self, rounds: Sequence[Sequence[FollowUp]], hits: dict[str, Hit]) -> str:
        """What was found so far, as later queries and the question see it."""
        if self.read is None:
            return join_passages(list(hits.values()))
        return "\n\n".join(
            fill(self._note, Task("note", "note", "en", one.query, given_answer=one.answer or ""))
            for done in rounds
            for one in done
        )


def read_queries(reply: str, count: int, before: Sequence[str]) -> list[str]:
    """At most `count` queries of a reply, a line each without its number or bullet; none that is in `before`."""
    known = {query.casefold() for query in before}
    queries: list[str] = []
    for line in reply.splitlines():
        query = _MARK.sub("", line).strip().strip("\"'`*")[:_LONGEST].strip()
        if any(map(str.isalnum, query)) and query.casefold() not in known:
            known.add(query.casefold())
            queries.append(query)
    return queries[:count]


def _follow_up(query: str, hits: Sequence[Hit], answer: str | None) -> FollowUp:
    return FollowUp(query=query, passages=tuple(map(kept_passage, hits)), answer=answer)


def kept_passage(hit: Hit) -> RetrievedPassage:
    """What a prediction keeps of a hit."""
    return RetrievedPassage(id=hit.passage.id, source=hit.passage.source, score=hit.score)
