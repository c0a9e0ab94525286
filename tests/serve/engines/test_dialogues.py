"""A run whose calls somebody hears through DSPy sends a server what any other run sends, and answers the same."""

from pathlib import Path
from typing import Any

import dspy
import pytest
from dspy.utils.callback import BaseCallback
from wire_server import Wire, serving

import medexam
from table_cases import read_table

WIRES: dict[str, dict[str, Any]] = {
    "tokens": {},
    "grammar": {"allowed": False},
    "merged turns": {"system": False, "repeats": False, "empty": False},
    "chat alone": {"tokenize": False},
}


class Listener(BaseCallback):
    def __init__(self) -> None:
        self.calls = 0

    def on_lm_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        self.calls += 1


def run(wire: Wire, program: dict[str, Any], model: dict[str, Any], folder: Path) -> tuple[Any, Any]:
    """What is kept of a question, and the bodies that the server received."""
    asked = {"engine": "vllm", "name": "tiny", "endpoints": [wire.address], **model}
    wire.requests.clear()
    settings = {"limit": 1, "runs_dir": folder, "track": False, "progress": False}
    (found,) = medexam.run("headqa_sample", model=asked, program=program, **settings)
    kept = {key: one.model_dump(exclude={"latency_s"}) for key, one in found.predictions.items()}
    return kept, sorted(str(body) for path, body in wire.requests if path.endswith("completions"))


@pytest.mark.parametrize(*read_table("calls_of_programs"))
def test_both_ways_send_and_answer_the_same(wire: str, program: dict, model: dict, tmp_path: Path) -> None:
    # Told not to think, a model's free replies are completions too, however its template is seen.
    listener = Listener()
    with serving(Wire(**WIRES[wire], switch=True)) as server:
        model = {"thinking": "off", **model} if server.tokenize else model
        unheard = run(server, program, model, tmp_path / "unheard")
        dspy.configure(callbacks=[listener])
        try:
            heard = run(server, program, model, tmp_path / "heard")
        finally:
            dspy.configure(callbacks=[])
    assert listener.calls
    assert heard == unheard
    assert unheard[1]
