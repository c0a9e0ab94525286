"""The likelihood program beside lm-evaluation-harness: the same questions, weights, dtype and threads in one run.

    python bench/lm_eval.py accuracy --questions 500
    python bench/lm_eval.py embedded --questions 48 --rounds 3
    python bench/lm_eval.py vllm http://127.0.0.1:8000/v1 --questions 48 --rounds 3

`accuracy` asks both sides the same questions with the harness's HEAD-QA protocol and compares each answer. `embedded`
and `vllm` compare speed, at short biology questions, at questions of all exams, and at medicine questions behind two
passages of a corpus: the harness takes the fastest of its settings on a few questions, then rounds alternate. Each
round's questions open with a number of their own, so that no side profits from what a server or an engine remembers of
another round. A side's rate is its median round. The harness's time is that of its `loglikelihood` call alone, without
the reading of the file and the building of requests before it; medexam's is that of whole programs. Prints one JSON
document.

Reads HEAD-QA v1 and the passages from `$MEDEXAM_DATA`. The harness runs in an environment of its own, which is made in
medexam's cache the first time unless `--lm-eval-python` names one. Run it on an idle machine: threads that share a
product wait for each other, so that one busy process beside them slows a round several times over, and not each round
alike; `load_average` in the document is that of the minute before.
"""

import argparse
import asyncio
import gzip
import itertools
import json
import os
import random
import statistics
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import dspy
import torch
from peers.environments import LM_EVAL, find_python
from peers.lm_eval_peer import LMEvalPeer, PeerPass
from transformers import AutoTokenizer

from medexam.datasets import load_exam_set
from medexam.programs import EngineLM, build_program
from medexam.questions import Discipline, Question
from medexam.serve import Engine, build_engine, smollm2_folder
from medexam.specs import DatasetSpec, EngineNeeds, ModelSpec, ProgramSpec, build_cells


def likelihood(**settings: str) -> ProgramSpec:
    program = {"kind": "likelihood", "prompt": "lm_eval", **settings}
    return build_cells({"name": "bench", "dataset": "headqa_sample", "program": program}, {})[1][0].program


OPTION_TEXT = likelihood(norm="sum")
"""The harness's `acc`."""
PER_CHARACTER = likelihood(norm="character")
"""The harness's `acc_norm`."""
ECHO = likelihood(norm="sum", read_by="echo")
LABEL = likelihood(read="label")

LABEL_SIDE = "medexam_label"
SIDES = ["medexam", "medexam_echo", LABEL_SIDE]
"""Reads another thing than the harness does; its answers are not compared."""

ACCURACY_BATCH = 8
WITHIN = 3
"""Questions by which the two sides' right answers may differ, for rounding."""
LONG_TOKENS = 400
"""Tokens that the context of a long question has at least."""

Answers = tuple[int | None, ...]
Side = Callable[[Sequence[Question]], Awaitable[tuple[float, Answers]]]
"""Answers questions: the seconds it took, and the printed number that it took of each."""


@dataclass(frozen=True)
class Asked:
    """Questions with their right answers."""

    questions: tuple[Question, ...]
    golds: Mapping[str, int]
    """The printed number of each question's right option, by key."""

    def right(self, answers: Answers) -> int:
        """How many of the answers are right."""
        return sum(self.golds[q.key] == answer for q, answer in zip(self.questions, answers, strict=True))


def load_questions(limit: int, *disciplines: Discipline) -> Asked:
    spec = DatasetSpec(name="headqa_v1", language="en", limit=limit, disciplines=disciplines or None)
    exam_set = load_exam_set(spec)
    return Asked(exam_set.questions, {key: gold.number for key, gold in exam_set.golds.items()})


def put_passages(asked: Asked, passages: Sequence[str], count: Callable[[Question], int]) -> Asked:
    """The same questions, each behind two passages drawn by its key."""
    return Asked(tuple(lengthen(question, passages, count) for question in asked.questions), asked.golds)


def lengthen(question: Question, passages: Sequence[str], count: Callable[[Question], int]) -> Question:
    """The question behind two passages; drawn anew until its context has `LONG_TOKENS`."""
    lots = random.Random(question.key)
    while True:
        stem = "\n\n".join([*lots.sample(passages, 2), question.stem])
        longer = question.model_copy(update={"stem": stem})
        if count(longer) >= LONG_TOKENS:
            return longer


def read_passages(file: Path) -> list[str]:
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        return [json.loads(line)["contents"] for line in lines]


def context_tokens(tokenizer: Any, question: Question) -> int:
    """Tokens of what stands before the options' texts."""
    return len(tokenizer(f"Question: {question.stem}\nAnswer:")["input_ids"])


def marked(questions: Sequence[Question], marks: Iterator[int]) -> list[Question]:
    """The same questions, opening with a number of this round."""
    mark = next(marks)
    return [question.model_copy(update={"stem": f"({mark}) {question.stem}"}) for question in questions]


def draw_marks() -> Iterator[int]:
    """Numbers of as many tokens each, not those of another run."""
    return iter(random.SystemRandom().sample(range(1000, 10000), 9000))


async def ask_program(engine: Engine, spec: ProgramSpec, questions: Sequence[Question]) -> tuple[float, Answers]:
    program = build_program(spec, "en")
    lm = EngineLM(engine, "medexam/model", temperature=None, max_tokens=None)
    places = asyncio.Semaphore(engine.concurrency)

    async def one(question: Question) -> int | None:
        async with places:
            said = await program.acall(question=question)
        answer: int | None = said.answer
        return answer

    with dspy.context(lm=lm, disable_history=True):
        begun = time.perf_counter()
        answers = await asyncio.gather(*(one(question) for question in questions))
        return time.perf_counter() - begun, tuple(answers)


@dataclass(frozen=True)
class Harness:
    """One of the harness's models, and where its right answers come from."""

    peer: LMEvalPeer
    model: str
    model_args: Mapping[str, Any]
    golds: Mapping[str, int]

    def ask(self, questions: Sequence[Question], **settings: int) -> PeerPass:
        golds = [self.golds[question.key] for question in questions]
        return self.peer.ask(self.model, {**self.model_args, **settings}, questions, golds)

    async def side(self, settings: Mapping[str, int], questions: Sequence[Question]) -> tuple[float, Answers]:
        """Answers as a `Side`, with settings bound."""
        said = await asyncio.to_thread(partial(self.ask, questions, **settings))
        return said.answering_s, said.answers(questions)


def pick_settings(
    harness: Harness, grid: Sequence[dict[str, int]], questions: Sequence[Question], marks: Iterator[int]
) -> tuple[dict[str, int], list[dict[str, float]]]:
    """The fastest of the harness's settings on `questions`, and the rate of each."""
    tried = []
    for settings in grid:
        spent = harness.ask(marked(questions, marks), **settings).answering_s
        tried.append((len(questions) / spent, settings))
    best = max(tried, key=lambda one: one[0])[1]
    return best, [{**settings, "questions_per_s": round(rate, 2)} for rate, settings in tried]


async def race(
    sides: Mapping[str, Side], questions: Sequence[Question], rounds: int, marks: Iterator[int]
) -> dict[str, list[float]]:
    """Questions per second of each side in each round; the side that begins changes from round to round."""
    speeds: dict[str, list[float]] = {name: [] for name in sides}
    names = list(sides)
    for turn in range(rounds):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            spent, _ = await sides[name](marked(questions, marks))
            speeds[name].append(len(questions) / spent)
    return speeds


async def compare_speed(
    arguments: argparse.Namespace,
    harness: Harness,
    grid: Sequence[dict[str, int]],
    ours: Mapping[str, Side],
    asked: Asked,
    count: Callable[[Question], int],
) -> dict[str, Any]:
    """One setting: the harness's pilot, one unmarked pass of all sides to compare answers, and the rounds."""
    marks = draw_marks()
    few = asked.questions[:: max(len(asked.questions) // arguments.pilot, 1)][: arguments.pilot]
    best, tried = pick_settings(harness, grid, few, marks)
    sides: dict[str, Side] = {"lm_eval": partial(harness.side, best), **ours}
    said = {name: (await side(few))[1] for name, side in sides.items()}
    speeds = await race(sides, asked.questions, arguments.rounds, marks)
    rates = {name: statistics.median(each) for name, each in speeds.items()}
    lengths = [count(question) for question in marked(asked.questions, marks)]
    return {
        "questions": len(asked.questions),
        "context_tokens": {"mean": round(statistics.mean(lengths), 1), "min": min(lengths), "max": max(lengths)},
        "lm_eval_settings": best,
        "lm_eval_pilot": tried,
        "questions_per_s": {name: round(rate, 2) for name, rate in rates.items()},
        "ratio_to_lm_eval": {name: round(rates[name] / rates["lm_eval"], 2) for name in ours},
        "each_round": {name: [round(speed, 2) for speed in each] for name, each in speeds.items()},
        "answers_compared": len(few),
        "agree_with_lm_eval": {name: count_same(said[name], said["lm_eval"]) for name in ours if name != LABEL_SIDE},
    }


def count_same(some: Answers, others: Answers) -> int:
    return sum(a == b for a, b in zip(some, others, strict=True))


async def compare_accuracy(arguments: argparse.Namespace, peer: LMEvalPeer) -> dict[str, Any]:
    asked = load_questions(arguments.questions)
    harness = embedded_harness(peer, asked.golds)
    theirs = await asyncio.to_thread(partial(harness.ask, asked.questions, batch_size=ACCURACY_BATCH))
    engine = await build_engine(embedded_model(), EngineNeeds(logprobs=True))
    report: dict[str, Any] = {"questions": len(asked.questions), **describe(engine, peer)}
    for metric, spec in (("acc", OPTION_TEXT), ("acc_norm", PER_CHARACTER)):
        _, ours = await ask_program(engine, spec, asked.questions)
        peers = theirs.answers(asked.questions, per_character=metric == "acc_norm")
        right, right_there = asked.right(ours), round(getattr(theirs, metric) * len(asked.questions))
        report[metric] = {
            "norm": spec.norm,
            "medexam": right / len(asked.questions),
            "lm_eval": getattr(theirs, metric),
            "right_medexam": right,
            "right_lm_eval": right_there,
            "within_three": abs(right - right_there) <= WITHIN,
            "agree": count_same(ours, peers),
            "differing": [
                {"question": question.key, "medexam": mine, "lm_eval": other}
                for question, mine, other in zip(asked.questions, ours, peers, strict=True)
                if mine != other
            ],
        }
    await engine.aclose()
    return report


async def compare_embedded(arguments: argparse.Namespace, peer: LMEvalPeer) -> dict[str, Any]:
    begun = time.perf_counter()
    engine = await build_engine(embedded_model(), EngineNeeds(logprobs=True))
    report: dict[str, Any] = {"medexam_load_s": round(time.perf_counter() - begun, 2), **describe(engine, peer)}
    ours = {"medexam": partial(ask_program, engine, OPTION_TEXT)}
    grid = [{"batch_size": size} for size in arguments.batch_sizes]
    for name, asked, count in make_settings(arguments):
        harness = embedded_harness(peer, asked.golds)
        report[name] = await compare_speed(arguments, harness, grid, ours, asked, count)
    await engine.aclose()
    return report


async def compare_vllm(arguments: argparse.Namespace, peer: LMEvalPeer) -> dict[str, Any]:
    engine = await build_engine(ModelSpec(engine="vllm", endpoints=(arguments.endpoint,)), EngineNeeds(logprobs=True))
    info = engine.info()
    report = describe(engine, peer)
    ways = {"medexam": OPTION_TEXT, "medexam_echo": ECHO, LABEL_SIDE: LABEL}
    ours = {name: partial(ask_program, engine, way) for name, way in ways.items() if name in arguments.sides}
    sizes = itertools.product(arguments.batch_sizes, arguments.concurrencies)
    grid = [{"batch_size": size, "num_concurrent": concurrent} for size, concurrent in sizes]
    model_args = {
        "model": info.model,
        "base_url": f"{info.endpoints[0]}/completions",
        "tokenizer": str(smollm2_folder()),
        "tokenizer_backend": "huggingface",
        "tokenized_requests": True,
        "max_length": info.max_context,
    }
    for name, asked, count in make_settings(arguments):
        harness = Harness(peer, "local-completions", model_args, asked.golds)
        compared = await compare_speed(arguments, harness, grid, ours, asked, count)
        rates = compared["questions_per_s"]
        report[name] = compared
        if {LABEL_SIDE, "medexam_echo"} <= rates.keys():
            compared["ratio_label_to_echo"] = round(rates[LABEL_SIDE] / rates["medexam_echo"], 2)
    await engine.aclose()
    return report


def embedded_model() -> ModelSpec:
    return ModelSpec(engine="embedded", dtype="float32", device="cpu")


def embedded_harness(peer: LMEvalPeer, golds: Mapping[str, int]) -> Harness:
    return Harness(peer, "hf", {"pretrained": str(smollm2_folder()), "dtype": "float32", "device": "cpu"}, golds)


def make_settings(arguments: argparse.Namespace) -> Iterator[tuple[str, Asked, Callable[[Question], int]]]:
    """`short`, `exam` and `long` questions, those that were asked for, and what counts their contexts' tokens."""
    count = partial(context_tokens, AutoTokenizer.from_pretrained(smollm2_folder()))
    if "short" in arguments.settings:
        yield "short", load_questions(arguments.questions, Discipline.BIOLOGY), count
    if "exam" in arguments.settings:
        yield "exam", load_questions(arguments.questions), count
    if "long" in arguments.settings:
        medicine = load_questions(arguments.questions, Discipline.MEDICINE)
        yield "long", put_passages(medicine, read_passages(arguments.passages), count), count


def describe(engine: Engine, peer: LMEvalPeer) -> dict[str, Any]:
    info = engine.info()
    return {
        "model": info.model,
        "revision": info.revision,
        "server": info.server_version,
        "medexam": info.details,
        "lm_eval": peer.versions,
        "threads": peer.threads,
    }


PARTS = {"accuracy": compare_accuracy, "embedded": compare_embedded, "vllm": compare_vllm}


def read_arguments() -> argparse.Namespace:
    data = Path(os.environ.get("MEDEXAM_DATA", "."))
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--lm-eval-python", type=Path, help="interpreter that has lm-eval; default: one is made")
    shared.add_argument("--threads", type=int, default=2)
    racing = argparse.ArgumentParser(add_help=False)
    racing.add_argument("--questions", type=int, default=48, help="of each setting")
    racing.add_argument("--rounds", type=int, default=3)
    racing.add_argument("--pilot", type=int, default=8, help="questions on which the harness's settings are tried")
    racing.add_argument("--settings", nargs="+", choices=["short", "exam", "long"], default=["short", "long"])
    racing.add_argument("--passages", type=Path, default=data / "corpus" / "passages.jsonl.gz")
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parts = parser.add_subparsers(dest="part", required=True)
    accuracy = parts.add_parser("accuracy", parents=[shared])
    accuracy.add_argument("--questions", type=int, default=500)
    embedded = parts.add_parser("embedded", parents=[shared, racing])
    embedded.add_argument("--batch-sizes", type=int, nargs="+", default=[1, 4, 8, 16, 32])
    vllm = parts.add_parser("vllm", parents=[shared, racing])
    vllm.add_argument("endpoint")
    vllm.add_argument("--batch-sizes", type=int, nargs="+", default=[1, 8, 32])
    vllm.add_argument("--sides", nargs="+", choices=SIDES, default=SIDES, help="medexam's ways to read")
    vllm.add_argument("--concurrencies", type=int, nargs="+", default=[4, 16])
    return parser.parse_args()


def main() -> None:
    arguments = read_arguments()
    load_average = round(os.getloadavg()[0], 2)
    torch.set_num_threads(arguments.threads)
    with LMEvalPeer(find_python(LM_EVAL, arguments.lm_eval_python), threads=arguments.threads) as peer:
        report = asyncio.run(PARTS[arguments.part](arguments, peer))
    print(json.dumps({"part": arguments.part, "load_average": load_average, **report}, indent=1))


if __name__ == "__main__":
    main()
