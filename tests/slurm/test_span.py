"""One server over two nodes of a real Slurm, by vLLM's CPU build: a run, and a node without power."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from medexam.files import cache_dir
from slurm.place import Place

QUESTIONS = 40
LOAD_S = 600.0

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.nightly,
    pytest.mark.vllm_env,
    pytest.mark.skipif("MEDEXAM_VLLM_PYTHON" not in os.environ, reason="MEDEXAM_VLLM_PYTHON names no Python with vLLM"),
]


def answered(runs: Path) -> int:
    return sum(len(path.read_text().splitlines()) for path in runs.glob("headqa_v1-*/predictions.jsonl"))


def test_a_run_survives_a_node_without_power(place: Place, tmp_path: Path) -> None:
    (cache_dir() / "models").mkdir(parents=True, exist_ok=True)
    (place.folder / "models").symlink_to(cache_dir() / "models")  # so that SmolLM2 is not unpacked again
    place.environment["OMP_NUM_THREADS"] = "1"
    place.environment["PYTHONPATH"] = str(Path(__file__).parent / "few_cores")
    # Few at once, so that answers come one after the other.
    words = ("--nodes", "2", "--span", "--slurm-option", "time=00:20:00")
    words = (*words, "--", "--max-model-len", "1024", "--max-num-seqs", "8")
    job = place.serve("smollm2-cpu", *words).stdout.splitlines()[0]
    first = place.registered(job, LOAD_S)
    runs = tmp_path / "runs"
    settings = {
        "model.engine": "vllm",
        "model.endpoints": f"[registry:{place.registry.path}]",
        "model.wait_s": "900",
        "model.max_tokens": "32",
        "dataset.name": "headqa_sample",
        "program.answer_format": "free",
    }
    told = place.cluster.folder / "slurm-run.log"  # so that a wait that fails shows it
    options = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    asking = place.command("run", "headqa_v1", *options, "--limit", str(QUESTIONS), "--runs-dir", str(runs), "--json")
    without_key = {key: value for key, value in place.environment.items() if key != "VLLM_API_KEY"}
    with (
        told.open("wb") as errors,
        subprocess.Popen(
            asking, env=without_key, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=tmp_path
        ) as running,
    ):
        place.cluster.wait_for(lambda: answered(runs) > 0 or running.poll() is not None, "the first answers", LOAD_S)
        assert running.poll() is None, told.read_text()
        place.cluster.cut_power("n2")
        place.cluster.wait_for(lambda: place.cluster.state(job) == "PENDING", "the job to be queued again")
        before = answered(runs)
        assert 0 < before < QUESTIONS
        place.cluster.start_node("n2")
        second = place.registered(job, LOAD_S)
        assert second.pid != first.pid
        output, _ = running.communicate(timeout=LOAD_S)
    assert running.returncode == 0, told.read_text()
    assert json.loads(output)
    (predictions,) = runs.glob("headqa_v1-*/predictions.jsonl")
    rows = [json.loads(line) for line in predictions.read_text().splitlines()]
    assert len({row["question"] for row in rows}) == len(rows) == QUESTIONS
    place.cancel(job)
