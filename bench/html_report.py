"""Size of `medexam report --html`, and how soon its first table is to be seen. Prints one JSON document.

    python bench/html_report.py [--reasoning 3] [--characters 900] [--repeats 5] [--page FILE]

Ten runs over all questions of HEAD-QA v1, read from `$MEDEXAM_DATA`: controls, direct and guided answers, likelihoods,
passages, and as many as `--reasoning` says that wrote replies of about `--characters`, made of real sentences of the
corpus there, so that they compress no better than a model's. Each is right as often as a question is easy. The page is
opened from the disk in headless Chromium; the first table counts as seen one frame after its rows are in sight, and not
before the browser's first paint.
"""

import argparse
import gzip
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from medexam.cli.output import read_current
from medexam.datasets import load_exam_set
from medexam.experiments import RunFolder
from medexam.experiments.report.page.document import write_page
from medexam.predictions import Reason, RetrievedPassage, Status
from medexam.questions import ExamSet, Question
from medexam.specs import DatasetSpec

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from browsing import Browser
from stored_runs import write_run

MODELS = ("Llama-3.1-8B-Instruct", "Mistral-7B-Instruct-v0.3", "Qwen2.5-7B-Instruct")
OTHERS: tuple[dict[str, Any], ...] = (
    {"kind": "longest"},
    {"kind": "random"},
    {"kind": "zero_shot"},
    {"kind": "zero_shot", "answer_format": "guided"},
    {"kind": "likelihood"},
    {"kind": "retrieve_then_answer", "k": 5, "retriever": {"kind": "bm25"}},
    {"kind": "few_shot"},
    {"kind": "few_shot", "answer_format": "guided"},
    {"kind": "retrieve_then_answer", "k": 2, "retriever": {"kind": "bm25"}, "answer_format": "guided"},
    {"kind": "blind", "option": 2},
)
RUNS = 10
SEEN = """
(() => {
  const look = () => {
    const row = document.querySelector("main table tbody tr");
    if (!row || row.getBoundingClientRect().top > innerHeight) return requestAnimationFrame(look);
    requestAnimationFrame(() => { window.benchSeen = performance.now(); });
  };
  requestAnimationFrame(look);
})();
"""
"""Runs before the page's own scripts; a frame later than the one that has the rows, they are on the screen."""


def sentences() -> list[str]:
    """Sentences of the corpus of `$MEDEXAM_DATA`, in its order."""
    path = Path(os.environ["MEDEXAM_DATA"]) / "corpus" / "passages.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        return [part for line in stream for part in json.loads(line)["content"].split(". ") if 30 < len(part) < 300]


def make_run(
    path: Path, at: int, program: dict[str, Any], model: str, exams: ExamSet, words: Sequence[str]
) -> RunFolder:
    """Write one run folder with a prediction for every question."""
    chance = random.Random(at)
    spec = {key: value for key, value in program.items() if key != "characters"}
    count = len(exams.questions)
    return write_run(
        path,
        exams,
        spec,
        lambda question, gold: answer(question, gold, program, 0.1 + 0.05 * at, chance, words),
        model={"engine": "litellm", "name": model},
        environment={"asked": count, "asked_s": 900.0, "engine": {"engine": "litellm", "model": model}},
        name="bench",
    )


def answer(
    question: Question, gold: int, program: dict[str, Any], strength: float, chance: random.Random, words: Sequence[str]
) -> dict[str, Any]:
    """The fields of one prediction; `strength` is how often an easy question is right."""
    kind = program["kind"]
    ease = random.Random(question.key).random()
    chosen = gold if chance.random() < strength * 2 * ease else chance.choice(question.option_numbers)
    if kind in {"longest", "random", "blind"}:
        return {"status": Status.ANSWERED, "answer": chosen}
    spent = {"prompt_tokens": 90 + chance.randrange(80), "completion_tokens": 6, "latency_s": chance.uniform(0.1, 3)}
    spent |= {"model": "bench", "finish_reason": "stop"}
    if kind == "likelihood":
        scores = {number: -chance.expovariate(0.3) - (number != chosen) for number in question.option_numbers}
        best = max(scores, key=lambda number: scores[number])
        unit = {"option_scores": scores, "score_unit": "nats per token", "score_norm": "token_mean", "tied": 1}
        return {"status": Status.ANSWERED, "answer": best, **unit, **spent}
    if kind == "retrieve_then_answer":
        spent["passages"] = tuple(
            RetrievedPassage(id=f"MedQuAD_{chance.randrange(10**7):07d}_{place}", source="MedQuAD", score=20.0 / place)
            for place in range(1, program["k"] + 1)
        )
    rationale = ""
    while len(rationale) < program.get("characters", 0) * chance.uniform(0.6, 1.4):
        rationale += chance.choice(words) + ". "
    if chance.random() < 0.03:
        return {"status": Status.UNANSWERED, "reason": Reason.UNPARSED, "reply": f"{rationale}None of them.", **spent}
    reply = {"reply": f"{rationale}{{Answer: {chosen}}}", "rationale": rationale.strip() or None}
    return {"status": Status.ANSWERED, "answer": chosen, **reply, **spent}


def first_table_s(page: Path, folder: Path) -> dict[str, float]:
    """Seconds from the start of the navigation to the first table, and to the list of questions with its words."""
    with Browser(folder) as browser:
        browser.send("Page.addScriptToEvaluateOnNewDocument", source=SEEN)
        browser.open(page.resolve().as_uri())
        seen = browser.wait("window.benchSeen")
        begun = time.perf_counter()
        paint = browser.run("performance.getEntriesByName('first-contentful-paint')[0].startTime")
        browser.wait("document.querySelector('.excerpt') && performance.now()")
        listed = browser.run("performance.now()") - 1000 * (time.perf_counter() - begun)
        opening = (
            "(async () => { const begun = performance.now(); document.querySelectorAll('.row')[3].click();"
            "while (!document.querySelector('.detail article')) await new Promise(requestAnimationFrame);"
            "return performance.now() - begun; })()"
        )
        search = (
            "(async () => { const begun = performance.now();"
            "const count = document.querySelector('.count').textContent;"
            "const box = document.querySelector('input[type=search]'); box.value = 'insulin';"
            "box.dispatchEvent(new Event('input'));"
            "while (document.querySelector('.count').textContent === count) await new Promise(requestAnimationFrame);"
            "return performance.now() - begun; })()"
        )
        return {
            "first_paint_s": paint / 1000,
            "first_table_s": max(seen, paint) / 1000,
            "list_s": listed / 1000,
            "open_question_s": browser.run(opening) / 1000,
            "search_s": browser.run(search) / 1000,
        }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--reasoning", type=int, default=3, help="runs with long replies, of ten")
    parser.add_argument("--characters", type=int, default=900, help="mean length of a long reply")
    parser.add_argument("--repeats", type=int, default=5, help="times that the page is opened")
    parser.add_argument("--page", type=Path, help="keep the page there")
    options = parser.parse_args()
    exams, words = load_exam_set(DatasetSpec(name="headqa_v1", language="en")), sentences()
    reasoning = [{"kind": "chain_of_thought", "characters": options.characters}] * options.reasoning
    programs = [*reasoning, *OTHERS][:RUNS]
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        folders = [
            make_run(place / f"run-{at}", at, program, MODELS[at % len(MODELS)], exams, words)
            for at, program in enumerate(programs)
        ]
        page = options.page or place / "page.html"
        begun = time.perf_counter()
        read = read_current(folders)
        scored = time.perf_counter()
        write_page(read, page)
        written = time.perf_counter()
        opened = [first_table_s(page, place / f"browser-{at}") for at in range(options.repeats)]
    figures = {
        "runs": len(programs),
        "reasoning_runs": options.reasoning,
        "reply_characters": options.characters,
        "questions": len(read[0].record.questions),
        "page_mb": round(page.stat().st_size / 1e6, 1),
        "rescore_s": round(scored - begun, 1),
        "write_s": round(written - scored, 1),
        **{name: round(statistics.median(each[name] for each in opened), 3) for name in opened[0]},
        "repeats": options.repeats,
    }
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
