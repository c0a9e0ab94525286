"""What a page says of each question: what every run was asked and answered, as one JSON that the page's script unpacks.

It stands under gzip and base64, since a page that is opened from the disk can fetch nothing. What many prompts share,
such as demonstrations, stands once.
"""

import base64
import gzip
import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any

from medexam.datasets.pictures import scale_picture
from medexam.experiments.store.derived_files import read_columns, read_own_scores
from medexam.experiments.store.items import load_items
from medexam.experiments.store.logs import json_bytes
from medexam.experiments.store.run_folder import PREDICTIONS
from medexam.experiments.store.stored_run import StoredRun
from medexam.measures.evidence.kinds import evidence_entry
from medexam.measures.scoring import find_outcome
from medexam.measures.shown import name_measure
from medexam.predictions import Prediction, Status
from medexam.questions import AnySet, Gold
from medexam.tables import percent, six_digits

MOST_QUESTIONS = 20_000
"""A page of more questions shows some of them: first those that some runs have right and others not."""
SAMPLE_BYTES = 8_000_000
"""What the stored answers to these may take, so that the page has 5 MB at most."""
ALL_TEXTS = 50_000_000
"""Characters that all replies together may have, some 25 MB of the page; above that the longest lose their middles."""
LONGEST_TEXT = 8_000
"""Characters that are kept at most of a prompt, a reply or a rationale."""
SHORTEST_LIMIT = 400
"""Characters that are kept at least, however many replies there are."""
PICTURE_SIDE = 640
"""Pixels of a picture's longest side."""
ALL_PICTURES = 30_000_000
"""Characters that all pictures together may have; those of later questions are left out."""
LEVEL = 5
"""Of gzip: 3 % larger than at 9, in less than half the time."""
_FIELDS = ("status", "reason", "answer", "finish_reason", "prompt_tokens", "completion_tokens", "thinking_tokens")
OUTCOMES, NOT_ASKED, UNKNOWN = "rwufm", "-", "a"
"""What became of a question in a run, as `find_outcome` numbers it; or an answer whose right one nobody here knows."""


@dataclass(frozen=True)
class RunAnswers:
    """One run, question by question; all mappings are by key."""

    run: StoredRun
    name: str
    """What tells the run from the others of the page."""
    items: Mapping[str, Any]
    golds: Mapping[str, Any]
    predictions: Mapping[str, Prediction]
    scores: Mapping[str, list[tuple[str, str]]]
    """Measures, and metrics of the user's own, with what an answer has."""

    def outcome(self, key: str) -> str:
        """Return the letter for what became of a question."""
        if key not in self.items:
            return NOT_ASKED
        prediction, gold = self.predictions.get(key), self.golds[key]
        if prediction is not None and prediction.status is Status.ANSWERED and not isinstance(gold, Gold):
            return UNKNOWN
        return OUTCOMES[find_outcome(gold, prediction)]

    def wording(self, key: str) -> dict[str, Any]:
        """Return what was asked, what is right, and where it stands, such as exam and number."""
        item, gold, benchmark = self.items[key], self.golds[key], self.run.benchmark
        return {
            "language": item.language,
            "gold": gold.number if isinstance(gold, Gold) else None,
            "others": list(getattr(gold, "others", ())),
            "place": benchmark.place(item),
            **benchmark.wording(item, gold),
        }

    def picture(self, key: str) -> str | None:
        """Return what the model was shown, as a data URL."""
        item = self.items.get(key)
        return None if item is None or self.run.record.cell.program.asking.pictures is None else item.picture

    def answer(self, key: str, longest: int, turns: dict[tuple[str, str], int]) -> dict[str, Any]:
        """Return what the run made of the question, with what a mark of it is imported by; nothing if it made none."""
        if (prediction := self.predictions.get(key)) is None:
            return {}
        answer = _answer(prediction, longest, turns)
        if prediction.reply is not None:
            answer["digest"] = answer_digest(prediction, self.run.benchmark.expected(self.golds[key]))
        return answer | ({"measures": self.scores[key]} if key in self.scores else {})


def pack_questions(runs: Sequence[StoredRun], names: Sequence[str]) -> tuple[str, list[str]]:
    """Pack every question that any run was asked, the first run's first; of too many, some.

    Returns the questions as the page holds them, and what is left out, in sentences.
    """
    every_key = list(dict.fromkeys(key for run in runs for key in run.record.questions))
    keys, notes, every = every_key, [], None
    if len(every_key) > MOST_QUESTIONS:
        rights = [_read_rights(run) for run in runs]
        files = [path for run in runs if (path := run.folder.path / PREDICTIONS).exists()]
        keys, note = _draw(every_key, rights, sum(path.stat().st_size for path in files) // len(every_key))
        every = ["".join({True: "r", False: "w", None: "m"}[of.get(key)] for key in every_key) for of in rights]
        notes.append(note)
        del rights
    sets, replies = dict[object, AnySet](), list[RunAnswers]()
    for run, name in zip(runs, names, strict=True):
        # Runs of the same questions share them, and only here: they are much of a page's memory.
        record, pictures = run.record, run.record.cell.program.asking.pictures
        identity = record.dataset_fingerprint, record.dataset_golds, record.questions, str(pictures)
        sets[identity] = sets.get(identity) or load_items(run.folder, frozenset(keys))
        replies.append(_read(run, name, sets[identity], frozenset(keys)))
    keys = [key for key in keys if any(key in run.items for run in replies)]
    longest = _limit_texts(replies)
    if longest < LONGEST_TEXT:
        notes.append(f"Replies of more than {longest:,} characters lose their middle here; predictions.jsonl has them.")
    asking = [run for run in replies if run.run.model is not None]
    silent = [run.name for run in asking if not any(each.calls for each in run.predictions.values())]
    if silent:
        of = "" if len(silent) == len(asking) else f" of {', '.join(silent)}"
        notes.append(f"No prompts and replies are stored{of}: what was chosen is shown.")
    benchmark, items = runs[0].benchmark, [next(run.items[key] for run in replies if key in run.items) for key in keys]
    facets = {title: [benchmark.place(item).get(name) for item in items] for name, title in benchmark.facets.items()}
    index = {
        "runs": [
            {
                "name": run.name,
                "dataset": run.run.record.cell.dataset.label,
                "id": run.run.record.run_id,
                "folder": str(run.run.folder.path.resolve()),
                "outcomes": "".join(map(run.outcome, keys)),
            }
            for run in replies
        ],
        "facets": [{"name": title, "of": values} for title, values in facets.items()],
        "every": every,
    }
    return _pack(index, keys, replies, longest), notes


def _read_rights(run: StoredRun) -> dict[str, bool]:
    columns = read_columns(run.folder, lambda name: name == "right")
    pairs = zip(columns.get("question", ()), columns.get("right", ()), strict=True)
    return {sys.intern(key): right for key, right in pairs if right is not None}


def _draw(keys: Sequence[str], rights: Sequence[Mapping[str, bool]], bytes_per_question: int) -> tuple[list[str], str]:
    """Draw as many questions as a page holds, those that some runs have right first, evenly; and say so."""
    count = min(MOST_QUESTIONS, SAMPLE_BYTES // max(1, bytes_per_question))
    flipped = [key for key in keys if len({right[key] for right in rights if key in right}) > 1]
    apart = frozenset(flipped)
    others = [key for key in keys if key not in apart]
    sample = {*_evenly(flipped, count), *_evenly(others, max(0, count - len(flipped)))}
    which = f"{'all' if len(flipped) <= count else 'some'} of the {len(flipped):,} that only some runs have right"
    note = f"{len(sample):,} of {len(keys):,} questions are shown: {which}, and others drawn evenly."
    if not flipped:
        note = f"{len(sample):,} of {len(keys):,} questions are shown, drawn evenly."
    return [key for key in keys if key in sample], f"{note} All scores count every question."


def _evenly(keys: Sequence[str], count: int) -> list[str]:
    if len(keys) <= count:
        return list(keys)
    return [keys[place * len(keys) // count] for place in range(count)]


def _read(run: StoredRun, name: str, items: AnySet, keys: frozenset[str]) -> RunAnswers:
    benchmark, predictions = run.benchmark, run.folder.read_predictions(keys)
    scores: dict[str, list[tuple[str, str]]] = {}
    for measure, score_by_key in benchmark.item_scores(items, predictions).items():
        for key, score in score_by_key.items():
            scores.setdefault(key, []).append((name_measure(measure), percent(score)))
    for metric, score_by_key in read_own_scores(run.folder).items():
        for key, score in score_by_key.items():
            scores.setdefault(key, []).append((metric, f"{score:.6g}"))
    return RunAnswers(run, name, {item.key: item for item in items.questions}, items.golds, predictions, scores)


def answer_digest(prediction: Prediction, expected: Any) -> str:
    """Hash what a model answered and what was expected, JSON-ready, into eight hexadecimal digits.

    A page gives it to each mark, and the import of marks compares it with the run.
    """
    words = json.dumps([prediction.reply, prediction.text, prediction.answer, expected])
    return hashlib.sha256(words.encode()).hexdigest()[:8]


def _pack(index: Mapping[str, Any], keys: Sequence[str], replies: Sequence[RunAnswers], longest: int) -> str:
    turns: dict[tuple[str, str], int] = {}
    buffer = BytesIO()
    with gzip.GzipFile(fileobj=buffer, mode="wb", compresslevel=LEVEL, mtime=0) as stream:
        stream.write(b'{"questions":[')
        small: dict[str, str] = {}
        budget = ALL_PICTURES
        for place, key in enumerate(keys):
            entry = _entry(key, replies, longest, turns)
            if url := next(filter(None, (run.picture(key) for run in replies)), None):
                if url not in small:
                    small[url] = scale_picture(base64.b64decode(url.partition(",")[2]), PICTURE_SIDE, key)
                if len(small[url]) <= budget:
                    entry["picture"] = small[url]
                    budget -= len(small[url])
            stream.write((b"," if place else b"") + json_bytes(entry, inf_nan_mode="null"))
        stream.write(b'],"turns":%b,"index":%b}' % (json_bytes(list(turns)), json_bytes(index)))
    return base64.b64encode(buffer.getbuffer()).decode("ascii")


def _entry(key: str, replies: Sequence[RunAnswers], longest: int, turns: dict[tuple[str, str], int]) -> dict[str, Any]:
    """Build all that the page shows of one question; each wording of it stands once, and so do `turns`."""
    wordings: list[dict[str, Any]] = []
    answers: list[dict[str, Any] | None] = []
    places: dict[int, int] = {}
    for run in replies:
        if (item := run.items.get(key)) is None:
            answers.append(None)
            continue
        # Runs of the same questions share each.
        if id(item) not in places:
            if (wording := run.wording(key)) not in wordings:
                wordings.append(wording)
            places[id(item)] = wordings.index(wording)
        answers.append(run.answer(key, longest, turns) | {"wording": places[id(item)]})
    return {"key": key, "wordings": wordings, "answers": answers}


def _limit_texts(replies: Sequence[RunAnswers]) -> int:
    """Find how many characters each reply may keep, so that all together keep some `ALL_TEXTS` at most."""
    limit, answers = LONGEST_TEXT, [each for run in replies for each in run.predictions.values()]
    lengths = [len(text) for each in answers for text in (each.reply, each.rationale) if text]
    while limit > SHORTEST_LIMIT and sum(min(length, limit) for length in lengths) > ALL_TEXTS:
        limit //= 2
    return limit


def _answer(prediction: Prediction, longest: int, turns: dict[tuple[str, str], int]) -> dict[str, Any]:
    reply, rationale, calls = prediction.reply, prediction.rationale, []
    if reply is not None and rationale is not None and rationale.strip() in reply:
        rationale = None
    for call in prediction.calls:
        messages = [(turn["role"], turn["content"]) for turn in call.messages]
        messages += [] if call.prompt is None else [("prompt", call.prompt)]
        places = [turns.setdefault((role, _shorten(text, LONGEST_TEXT) or ""), len(turns)) for role, text in messages]
        reply_text = {} if call.text is None else {"reply": _shorten(call.text, longest)}
        calls += [{"turns": places} | reply_text] if messages else []
    if any("reply" in call for call in calls):
        reply = rationale = None
    answer = {
        **{name: getattr(prediction, name) for name in _FIELDS},
        "text": None if prediction.text == (prediction.reply or "").strip() else _shorten(prediction.text, longest),
        "reply": _shorten(reply, longest),
        "rationale": _shorten(rationale, longest),
        "calls": calls or None,
        "latency_s": six_digits(prediction.latency_s),
        **evidence_entry(prediction),
    }
    return {name: value for name, value in answer.items() if value is not None}


def _shorten(text: str | None, longest: int) -> str | None:
    if text is None or len(text) <= longest:
        return text
    half = longest // 2
    left_out = len(text) - 2 * half
    return f"{text[:half]}\n[… {left_out} characters are left out here; predictions.jsonl has them …]\n{text[-half:]}"
