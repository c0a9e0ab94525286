"""A provider behind `engine: litellm` that refuses, is out of money or says nothing: one line, and soon."""

import json
import re
from pathlib import Path

from medexam.serve import TIMING
from soak.server import REFUSALS
from soak.stage import Stage

_NOISE = re.compile(r"Give Feedback|LiteLLM\.Info|Provider List|LiteLLM:(?:ERROR|WARNING)")
LIMIT_S = 30.0
"""Longest time that a refused run may take."""


def be_refused(stage: Stage) -> None:
    """Run one spec against a server that refuses from its first, or from some later request."""
    chance, folder = stage.chance, stage.folder
    how, after = chance.choice([*REFUSALS]), chance.choice([0, 0, 1, 2, 3, 5, 8])
    name = chance.choice(["openai/tiny", "hosted_vllm/tiny"])
    kind = chance.choice(["free", "guided"])
    spec = make_spec(stage.server.address, how, after, stage.trial.seed, name=name, answer_format=kind)
    (folder / "spec.json").write_text(json.dumps(spec), encoding="utf-8")
    step = stage.carry_out("refused", ["run", "spec.json", "--runs-dir", "runs"], before=shorten_waits)
    said = stage.children[0].said
    last = [line for line in said.splitlines() if line.startswith("medexam: ") and ": warning: " not in line]
    what = f"{how} after {after} requests, {name}, {kind}"
    if step.statuses[0] not in (2, 3):
        stage.blame(f"{what}: exit code {step.statuses[0]}")
    if len(last) != 1:
        stage.blame(f"{what}: {len(last)} lines say why")
    if noise := _NOISE.search(said):
        stage.blame(f"{what}: litellm says {noise[0]!r}")
    if step.seconds > LIMIT_S:
        stage.blame(f"{what}: {step.seconds} s")


def make_spec(address: str, how: str, after: int, once: str, **settings: str) -> dict[str, object]:
    """An experiment whose server refuses in one way after so many requests; `once` sets trials apart."""
    place = address.removesuffix("/v1") + f"/refusing/{how}/{after}/{once}/v1"
    return {
        "name": "refused",
        "dataset": {"name": "headqa_sample", "language": "en", "limit": 8},
        "model": {"engine": "litellm", "name": settings["name"], "endpoints": [place], "timeout_s": 5},
        "program": {"kind": "zero_shot", "answer_format": settings["answer_format"]},
    }


def shorten_waits() -> None:
    """Have this process ask again once, and soon."""

    TIMING.attempts, TIMING.first_wait_s, TIMING.longest_hint_s = 2, 0.01, 0.05


def result(folder: Path) -> list[str]:
    """The runs by name."""
    return sorted(path.parent.name for path in folder.glob("runs/*/spec.json"))
