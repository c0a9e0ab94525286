"""Reading solvers (Vilares and Gómez-Rodríguez, ACL 2019): a local model reads texts, and an answer follows.

Options and spans are compared by Snowball's stems, without stop words (their footnote 12). They compare lemmas, for
which a model of each language would be needed. Words of languages that Snowball or bm25s do not know stay as they are.
"""

import asyncio
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import Any

from dspy import Module, Prediction

from medexam.model_calls import Generation
from medexam.programs import PassageFinder, ProgramContext, keep_passages
from medexam.questions import Language, Option, Question, Task
from medexam.retrievers import Hit, load_stop_words
from medexam.text import split_sentences
from medexam.weights import Weights
from medexam_companions.casimedicos.readers.entailment import EntailmentReader
from medexam_companions.casimedicos.readers.loading import Task as ReaderTask
from medexam_companions.casimedicos.readers.loading import load_reader
from medexam_companions.casimedicos.readers.spans import SpanReader

SPAN_READER, ENTAILMENT = (Path(__file__).with_name(f"{name}.yaml") for name in ("span_reader", "entailment"))
"""The files of its kinds."""
UNIT = "nats (log-probability of entailment)"
_LEAST = math.log(1e-300)
"""The score of an option for which no passage was found, in nats."""
_STEMMERS: dict[Language, str] = {"en": "english", "es": "spanish", "it": "italian", "ru": "russian"}
_STOP_LISTS: dict[Language, str] = {"en": "EN_PLUS", "es": "SPANISH", "it": "ITALIAN", "ru": "RUSSIAN"}
"""Language -> the end of the name of bm25s' list."""
_WORD = re.compile(r"\w+")


class LazyReader:
    """A reader that is loaded when it first reads, and reads for one question at a time."""

    def __init__(self, weights: Weights, task: ReaderTask, make: Any) -> None:
        self.label = weights.label
        self._load = cache(lambda: make(load_reader(weights.source, task, weights.revision)))
        self._lock = Lock()

    def read(self, pairs: Sequence[tuple[str, str]]) -> Any:
        """Return what it finds in each pair; raises `EngineError` where it cannot be loaded or has no such head."""
        with self._lock:
            return self._load().read(pairs)


class ReadingProgram(Module):
    """A program that has a local model read in a thread of its own, and asks no engine."""

    def __init__(self, answer: Callable[[Any], Prediction]) -> None:
        super().__init__()
        self._answer = answer

    def forward(self, question: Any) -> Prediction:
        """Answer one question."""
        return self._answer(question)

    async def aforward(self, question: Any) -> Prediction:
        """Answer one question without blocking."""
        return await asyncio.to_thread(self._answer, question)


def build_span_reader(spec: Any, _: Language, context: ProgramContext) -> Module:
    """Build the program; raises `ValueError` if the context lacks what it reads with."""
    reader = context.needed("reader", "a reader")
    if isinstance(reader, Weights):
        reader = LazyReader(reader, "span", partial(SpanReader, answer_tokens=spec.answer_tokens))
    if spec.asking.retrieval is None:
        return ReadingProgram(partial(_extract_span, reader))
    return ReadingProgram(partial(_choose_by_span, reader, context.needed("finder", "a finder of passages")))


def build_entailment(_spec: object, _: Language, context: ProgramContext) -> Module:
    """Build the program; raises `ValueError` if the context lacks what it reads with."""
    reader = context.needed("reader", "a reader")
    if isinstance(reader, Weights):
        reader = LazyReader(reader, "entailment", EntailmentReader)
    return ReadingProgram(partial(_choose_entailed, reader, context.needed("finder", "a finder of passages")))


def _extract_span(reader: Any, task: Task) -> Prediction:
    """Answer with the span of a task's context: predictions hold `text` and `span`."""
    (span,) = reader.read([(task.question, task.context)])
    if span is None or not span.text:
        return Prediction()
    place, reply = (span.start, span.end), _quote(span.text, reader)
    return Prediction(text=span.text, span=place, alignment="literal", generation=reply)


def _choose_by_span(reader: Any, finder: PassageFinder, question: Question) -> Prediction:
    """Choose the option with the largest share of its stems in the best span of all passages.

    A prediction's reply is the span, `passages` are those found; unanswered where no passage was found.
    """
    stem, hits = finder.asked(question).stem, list(finder.find(question))
    spans = [*filter(None, reader.read([(stem, hit.passage.text) for hit in hits]))]
    if not spans:
        return Prediction(passages=keep_passages(hits))
    text = max(spans, key=lambda span: span.score).text
    answer = _choose_by_overlap(finder.asked(question), text)
    return Prediction(answer=answer, generation=_quote(text, reader), passages=keep_passages(hits))


def _choose_entailed(reader: Any, finder: PassageFinder, question: Question) -> Prediction:
    """Choose the option whose hypothesis, the stem with the option, some sentence of the passages entails most.

    A prediction's reply is the sentence that decided, and `option_scores` are log-probabilities of entailment, so that
    an option's share is its probability of entailment among those of all options. Of equal options the first is taken;
    unanswered where no passage was found.
    """
    hypotheses = _list_hypotheses(question, finder)
    scores_read = reader.read([pair for _, pair in hypotheses])
    best: dict[int, tuple[float, str]] = {}
    for (option, pair), score in zip(hypotheses, scores_read, strict=True):
        if option not in best or score > best[option][0]:
            best[option] = float(score), pair[0]
    passages = keep_passages(_merge_hits(finder, question))
    if not best:
        return Prediction(passages=passages)
    scores = {number: max(best.get(number, (_LEAST, ""))[0], _LEAST) for number in question.option_numbers}
    answer = max(scores, key=scores.__getitem__)
    quote = _quote(best[answer][1], reader)
    return Prediction(answer=answer, generation=quote, passages=passages, option_scores=scores, score_unit=UNIT)


def _list_hypotheses(question: Question, finder: PassageFinder) -> list[tuple[int, tuple[str, str]]]:
    """List each sentence of an option's passages with the stem and that option, behind the option's number.

    All in the language of the passages; sentences without a word are left out.
    """
    translation, hits_by_option = finder.asked(question), finder.find_per_option(question)
    return [
        (option.number, (sentence, f"{translation.stem} {option.text}"))
        for option in translation.options
        for hit in hits_by_option[option.number]
        for begin, end in split_sentences(hit.passage.content)
        if any(map(str.isalnum, sentence := hit.passage.content[begin:end]))
    ]


def _merge_hits(finder: PassageFinder, question: Question) -> list[Hit]:
    """Merge the passages of all options, each once by its best score."""
    hits = [hit for of_option in finder.find_per_option(question).values() for hit in of_option]
    best = {hit.passage.id: hit for hit in sorted(hits, key=lambda hit: hit.score)}.values()
    ordered = enumerate(sorted(best, key=lambda hit: -hit.score), 1)
    return [replace(hit, rank=rank) for rank, hit in ordered]


def _quote(text: str, reader: Any) -> Generation:
    return Generation(text, "stop", reader.label, prompt_tokens=None, completion_tokens=None)


def _choose_by_overlap(question: Question, span: str) -> int:
    """Return the printed number of the option with the largest share of its stems in `span`.

    Of equal shares the longest option is taken, of equally long ones the first; so it is where the span shares nothing
    with any option.
    """
    span_stems = _stems(span, question.language)

    def rank(option: Option) -> tuple[float, int]:
        option_stems = _stems(option.text, question.language)
        return (len(option_stems & span_stems) / len(option_stems) if option_stems else 0.0, len(option.text))

    return max(question.options, key=rank).number


def _stems(text: str, language: Language) -> frozenset[str]:
    """Return the different stems of a text's words in lower case, numbers among them and stop words not.

    A single capital letter behind the first word, such as vitamin A, is no stop word.
    """
    if language not in _STEMMERS:
        return frozenset(_WORD.findall(text.lower()))
    words = _WORD.findall(text)
    symbols = {word for word in words[1:] if len(word) == 1 and word.isupper()}
    stop_words = load_stop_words(language, _STOP_LISTS)
    lower_words = [word.lower() for word in words if word in symbols or word.lower() not in stop_words]
    return frozenset(import_module("Stemmer").Stemmer(_STEMMERS[language]).stemWords(lower_words))
