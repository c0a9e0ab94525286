"""What the page says of each question: a line of its list, and everything that is shown once it is chosen.

It makes JSON-ready values and knows nothing of how they are packed.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from medexam.experiments.report.page.answers import Answers, Asked
from medexam.formatting import percent
from medexam.predictions import Prediction, Status

LONGEST_TEXT = 8_000
"""Characters that are kept at most of a reply or a rationale."""
SHORTEST_LIMIT = 400
"""Characters that are kept at least, however many replies there are."""

RIGHT, WRONG, UNANSWERED, FAILED, MISSING, NOT_ASKED, UNKNOWN = "rwufm-a"
"""What the index says of a question in one run; `UNKNOWN` is an answer whose right one nobody here knows."""


def outcome(asked: Asked | None, prediction: Prediction | None) -> str:
    """One letter for what became of a question in a run that was `asked` it, or was not (None)."""
    if asked is None:
        return NOT_ASKED
    if prediction is None:
        return MISSING
    if prediction.status is not Status.ANSWERED:
        return FAILED if prediction.status is Status.FAILED else UNANSWERED
    if asked.gold is None:
        return UNKNOWN
    return RIGHT if prediction.answer == asked.gold else WRONG


def build_index(keys: Sequence[str], runs: Sequence[Answers], facets: Mapping[str, str]) -> dict[str, Any]:
    """What the list and its filters need of the questions of `keys`: a value a question, or one a question and run."""
    firsts = [next(run.asked[key] for run in runs if key in run.asked) for key in keys]
    return {
        "runs": [run.name for run in runs],
        "without_texts": [run.without_texts for run in runs],
        "keys": keys,
        "numbers": [asked.place.get("number") for asked in firsts],
        "facets": [_facet(title, [asked.place.get(name) for asked in firsts]) for name, title in facets.items()],
        "outcomes": ["".join(outcome(run.asked.get(key), run.predictions.get(key)) for key in keys) for run in runs],
    }


def _facet(title: str, found: Sequence[Any]) -> dict[str, Any]:
    """The values of one facet, and for each question the place of its own among them; -1 for none."""
    values = sorted({value for value in found if value is not None})
    places = {value: place for place, value in enumerate(values)}
    return {"name": title, "values": values, "of": [places.get(value, -1) for value in found]}


def join_stems(key: str, runs: Sequence[Answers]) -> str:
    """The stem in every language that was asked, a line each; empty where it is not at hand."""
    wordings = [run.asked[key].wording for run in runs if key in run.asked]
    stems = [str(wording.get("stem", "")) for wording in wordings if wording is not None]
    return "\n".join(dict.fromkeys(" ".join(stem.split()) for stem in stems))


def build_entry(key: str, runs: Sequence[Answers], longest: int) -> dict[str, Any]:
    """All that the page shows of one question; each wording of it stands once.

    `longest` is how many characters are kept of a reply or a rationale; a longer one loses its middle.
    """
    asked: list[Asked] = []
    answers: list[dict[str, Any] | None] = []
    for run in runs:
        if key not in run.asked:
            answers.append(None)
            continue
        if run.asked[key] not in asked:
            asked.append(run.asked[key])
        scores = [[name, percent(of[key])] for name, of in run.scores.items() if key in of]
        said = _answer(run.predictions.get(key), longest) | ({"measures": scores} if scores else {})
        answers.append(said | {"wording": asked.index(run.asked[key])})
    return {"key": key, "wordings": [_wording(each) for each in asked], "answers": answers}


def text_limit(runs: Sequence[Answers], characters: int) -> int:
    """How many characters each reply and rationale may keep, so that all of them together keep `characters` at most.

    Short ones leave their share to the others. No less than `SHORTEST_LIMIT`, and no more than `LONGEST_TEXT`.
    """
    lengths = sorted(min(len(text), LONGEST_TEXT) for text in _all_texts(runs))
    for at, length in enumerate(lengths):
        share = characters // (len(lengths) - at)
        if length > share:
            return max(share, SHORTEST_LIMIT)
        characters -= length
    return LONGEST_TEXT


def _all_texts(runs: Sequence[Answers]) -> Iterator[str]:
    for run in runs:
        for key in run.asked:
            if key in run.predictions:
                yield from (text for text in _written(run.predictions[key]) if text is not None)


def _written(prediction: Prediction) -> tuple[str | None, str | None]:
    """The reply, and the rationale where the reply does not hold it already."""
    reply, rationale = prediction.reply, prediction.rationale
    if rationale is not None and reply is not None and rationale.strip() in reply:
        rationale = None
    return reply, rationale


def _wording(asked: Asked) -> dict[str, Any]:
    found: dict[str, Any] = {"language": asked.language, "gold": asked.gold, "exam": asked.place.get("exam")}
    return found | dict(asked.wording or {})


def _answer(prediction: Prediction | None, longest: int) -> dict[str, Any]:
    """What a run made of the question, without what is None; empty where it has not answered yet."""
    if prediction is None:
        return {}
    reply, rationale = _written(prediction)
    scores, failure = prediction.option_scores, prediction.failure
    found = {
        "status": prediction.status.value,
        "reason": prediction.reason.value if prediction.reason else None,
        "answer": prediction.answer,
        "text": None if prediction.text == (reply or "").strip() else _shorten(prediction.text, longest),
        "reply": _shorten(reply, longest),
        "rationale": _shorten(rationale, longest),
        "finish_reason": prediction.finish_reason,
        "prompt_tokens": prediction.prompt_tokens,
        "completion_tokens": prediction.completion_tokens,
        "latency_s": _round(prediction.latency_s),
        "scores": None if scores is None else [[number, _round(score)] for number, score in scores.items()],
        "score_unit": prediction.score_unit,
        "score_norm": prediction.score_norm,
        "passages": _passages(prediction),
        "passages_cut": prediction.passages_cut or None,
        "failure": None if failure is None else f"{failure.kind}: {failure.message}",
    }
    return {name: value for name, value in found.items() if value is not None}


def _passages(prediction: Prediction) -> list[list[Any]] | None:
    if prediction.passages is None:
        return None
    return [[passage.id, passage.source, _round(passage.score)] for passage in prediction.passages]


def _round(value: float | None) -> float | None:
    """Six digits, more than anybody reads off a page; None too for what JSON cannot say."""
    return None if value is None or not math.isfinite(value) else float(f"{value:.6g}")


def _shorten(text: str | None, longest: int) -> str | None:
    if text is None or len(text) <= longest:
        return text
    half = longest // 2
    left_out = len(text) - 2 * half
    return f"{text[:half]}\n[… {left_out} characters are left out here; predictions.jsonl has them …]\n{text[-half:]}"
