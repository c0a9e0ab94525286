"""Shipped programs on 240 real questions: requests, predictions and digests are those that `golden_flows.json` seals.

A change that is meant is written there anew: `PYTHONPATH=.:tests python tests/experiments/run/test_golden_flows.py`.
"""

import hashlib
import json
import re
import tempfile
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
import yaml

import medexam
from medexam.model_calls import SAMPLED, Dialogue
from medexam.serve import ScriptedEngine
from scripted_engines import LAST_MADE, MADE
from table_cases import read_cases

GOLDEN = Path(__file__).with_name("golden_flows.json")
DRAWN = {"temperature": 0.7}
FLOWS = {case.id: case.values[0]["program"] for case in read_cases("flows")}


def write_reply(words: str, dialogue: Dialogue) -> dict[str, Any]:
    """Reply by the last words: an option's number in the form that they ask for, at times behind a sentence."""
    digest = crc32(words.encode())
    number = digest % 4 + 1
    texts = dialogue.continuations.texts if dialogue.continuations else ()
    logprobs = [[-(crc32(word.encode()) % 97 + 1) / 9 for word in text.split()] for text in texts] or None
    if "[[ ## " in words:
        names = re.findall(r"\[\[ ## (\w+) ## \]\]", words[words.rfind("Respond with") :])
        values = {"answer": number, "helps": bool(digest % 3), "supported": bool(digest % 2), "sure": bool(digest % 2)}
        text = "\n\n".join(f"[[ ## {name} ## ]]\n{values.get(name, 'So.')}" for name in names)
    else:
        text = f"{'' if digest % 7 else 'Surely. '}{{Answer: {number}}}"
    if dialogue.choices:
        text = dialogue.choices[crc32(text.removeprefix(dialogue.opening).encode()) % len(dialogue.choices)]
    return {"text": text, "logprobs": logprobs}


def seal(parts: list[str]) -> str:
    return hashlib.sha256("\n".join(sorted(parts)).encode()).hexdigest()[:16]


def keep_request(dialogue: Dialogue) -> str:
    """Return what a model is sent."""
    read = dialogue.continuations.model_dump(mode="json") if dialogue.continuations else None
    words = [dialogue.messages, dialogue.opening, dialogue.choices, read, dict(dialogue.fields)]
    written = {"stop": [], **dialogue.sampling}
    return json.dumps([words, {name: written[name] for name in SAMPLED if name in written}])


def call_of(dialogue: Dialogue) -> str:
    """Return the call of a request as a run stores it."""
    read, sampling = dialogue.continuations, dialogue.sampling
    turns = dialogue.turns_with_opening
    plain = dialogue.plain or (read is not None and not read.template)
    words = "".join(turn["content"] for turn in turns) if plain else turns
    weighed = None if read is None else read.texts
    return json.dumps([words, dialogue.choices, weighed, sampling])


def keep(prediction: medexam.Prediction) -> str:
    """Return what is kept of a prediction but for times and digests, with digits that every processor computes."""
    parts = json.loads(json.dumps(prediction.to_json()), parse_float=lambda number: round(float(number), 9))
    left_out = ("spec_digest", "answered_by", *(name for name in parts if name.endswith("_s")))
    return json.dumps({name: part for name, part in parts.items() if name not in left_out}, sort_keys=True)


def run_flow(name: str, folder: Path, patch: pytest.MonkeyPatch) -> dict[str, object]:
    """Run a program on the sample's questions in two languages, and seal what was sent and answered."""
    patch.chdir(folder)
    passages = medexam.load_questions("headqa_sample")
    lines = [{"id": str(n), "title": "", "text": f"{one.stem} {one.options[0].text}"} for n, one in enumerate(passages)]
    Path("corpus.jsonl").write_text("".join(json.dumps({**line, "source": "x"}) + "\n" for line in lines))
    Path("replies.yaml").write_text(yaml.safe_dump({"*": "none"}))
    document = {
        "name": "golden",
        "dataset": {"name": "headqa_sample"},
        "model": {"engine": "scripted", "path": "replies.yaml", **DRAWN},
        "program": FLOWS[name],
        "matrix": {"dataset.language": ["en", "es"]},
    }
    digests = [cell["spec_digest"] for cell in medexam.plan(document, runs_dir="runs").cells]
    MADE.append(engine := ScriptedEngine(write_reply))
    document["model"] = {"engine": LAST_MADE, **DRAWN}
    runs = medexam.run(document, runs_dir="runs", progress=False, track=False)
    predictions = [prediction for run in runs for prediction in run.predictions.values()]
    stored = [
        json.dumps([call.prompt or call.messages, call.choices, call.texts, call.sampling])
        for prediction in predictions
        for call in prediction.calls
    ]
    assert sorted(stored) == sorted(map(call_of, engine.dialogues))
    kept = list(map(keep, predictions))
    return {
        "questions": len(kept),
        "requests": seal(list(map(keep_request, engine.dialogues))),
        "predictions": seal(kept),
        "digests": digests,
    }


@pytest.mark.parametrize("name", FLOWS)
def test_a_flow_asks_and_answers_as_it_is_sealed(name, tmp_path, monkeypatch) -> None:
    assert run_flow(name, tmp_path, monkeypatch) == json.loads(GOLDEN.read_text())[name]


def write_golden() -> None:
    sealed = {}
    for name in FLOWS:
        with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
            sealed[name] = run_flow(name, Path(folder), patch)
    GOLDEN.write_text(json.dumps(sealed, indent=1) + "\n")


if __name__ == "__main__":
    write_golden()
