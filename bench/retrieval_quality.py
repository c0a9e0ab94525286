"""Do MedQuAD's own questions find their answers? Recall of each retriever over the full English corpus.

    MEDEXAM_DATA=DATA python bench/retrieval_quality.py [--questions 2000] [--kinds dense bm25 fusion]

A passage's title holds the focus of MedQuAD's question and its type, and MedQuAD words a type always alike, so the
question that was asked can be written again. Only answers of a single passage are looked for: each question then has
one right passage among all of the corpus, and recall@k is the share of questions that have it among their first k.
The questions are those whose ids have the lowest SHA-256. MRR and nDCG are of the first ten. The means are those of
ir-measures.
"""

import argparse
import hashlib
import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence

import ir_measures
from ir_measures import RR, R, nDCG

from medexam.files import cache_dir
from medexam.retrievers import Passage, load_corpus, plan_retriever
from medexam.specs import RetrieverSpec

WORDED = {
    "information": "What is (are) {} ?",
    "symptoms": "What are the symptoms of {} ?",
    "treatment": "What are the treatments for {} ?",
    "genetic changes": "What are the genetic changes related to {} ?",
    "frequency": "How many people are affected by {} ?",
    "inheritance": "Is {} inherited ?",
    "causes": "What causes {} ?",
    "exams and tests": "How to diagnose {} ?",
    "research": "What research (or clinical trials) is being done for {} ?",
    "outlook": "What is the outlook for {} ?",
    "susceptibility": "Who is at risk for {}? ?",
    "considerations": "What to do for {} ?",
    "prevention": "How to prevent {} ?",
    "stages": "What are the stages of {} ?",
    "complications": "What are the complications of {} ?",
}
"""MedQuAD's type of a question -> its words around the focus."""
DEPTHS = (1, 2, 10)


def write_question(title: str) -> str | None:
    """The question of a MedQuAD title; None where the type is not one of `WORDED`."""
    focus, _, kind = title.rpartition(" - ")
    if not focus:
        return WORDED["information"].format(title)
    return WORDED[kind].format(focus) if kind in WORDED else None


def choose_questions(passages: Sequence[Passage], count: int) -> dict[str, str]:
    """Id of the only passage of an answer -> the question that it answers."""
    pieces = Counter(passage.id.rpartition("_")[0] for passage in passages)
    alone = [
        (passage.id, question)
        for passage in passages
        if passage.id.startswith("MedQuAD_") and pieces[passage.id.rpartition("_")[0]] == 1
        if (question := write_question(passage.title))
    ]
    alone.sort(key=lambda pair: hashlib.sha256(pair[0].encode()).hexdigest())
    return dict(alone[:count])


def score(kind: str, questions: Mapping[str, str]) -> dict[str, float]:
    """Recall at each depth, MRR and nDCG of the first ten, and seconds to find them, index and encoder at hand."""
    retriever = plan_retriever(RetrieverSpec.model_validate({"kind": kind})).open(cache_dir())
    retriever.search(["warm up"], 1)
    begun = time.perf_counter()
    hits = retriever.search(list(questions.values()), max(DEPTHS))
    seconds = time.perf_counter() - begun
    rankings = {key: [hit.passage.id for hit in found] for key, found in zip(questions, hits, strict=True)}
    return {**{name: round(value, 4) for name, value in measure(rankings).items()}, "seconds": round(seconds, 2)}


def measure(rankings: Mapping[str, Sequence[str]]) -> dict[str, float]:
    """The means over the rankings, each of a question whose key is the id of its one right passage."""
    names = {R @ 1: "recall@1", R @ 2: "recall@2", R @ 10: "recall@10", RR @ 10: "mrr@10", nDCG @ 10: "ndcg@10"}
    run = {key: {name: -float(rank) for rank, name in enumerate(ranked)} for key, ranked in rankings.items()}
    judged = {key: {key: 1} for key in rankings}
    return {names[kind]: value for kind, value in ir_measures.calc_aggregate(list(names), judged, run).items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--questions", type=int, default=2000)
    parser.add_argument("--kinds", nargs="+", default=["dense", "bm25", "fusion"])
    arguments = parser.parse_args()
    corpus = load_corpus(None)
    questions = choose_questions(corpus.passages, arguments.questions)
    rows = {kind: score(kind, questions) for kind in arguments.kinds}
    report = {"corpus": corpus.name, "passages": len(corpus.passages), "questions": len(questions), "retrievers": rows}
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
