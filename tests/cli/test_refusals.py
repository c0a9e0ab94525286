"""What cannot be done is one line that names the way out, and exit code 2: the likeliest mistakes."""

import json
from pathlib import Path

import pytest

FILES = {
    "ok.yaml": "name: s\ndataset: {name: headqa_sample, limit: 2}\nprogram: longest\n",
    "zero.yaml": "name: s\ndataset: {name: headqa_sample, limit: 2}\nprogram: zero_shot\n",
    "questions.csv": "question,a,b,answer\nWhat?,x,y,1\n",
    "empty.yaml": "",
    "list.yaml": "- a\n- b\n",
    "tab.yaml": "name: s\ndataset:\n\tname: headqa_sample\n",
    "matrix.yaml": "name: s\ndataset: headqa_sample\nmatrix: {program.kind: random}\n",
    "knd.yaml": "name: s\ndataset: headqa_sample\nmatrix: {program.knd: [random]}\n",
    "datset.yaml": "name: s\ndatset: headqa_sample\n",
    "nameless.yaml": "dataset: headqa_sample\n",
    "twice.yaml": "name: s\nname: t\n",
    "suite0.yaml": "suite: []\n",
    "suite1.yaml": "suite: [{name: x}]\n",
    "suite2.yaml": "suite: [sample_suite]\n",
    "suite3.yaml": "suite: [headqa_sample]\nmodle.name: x\n",
}
CASES = Path(__file__).parents[1] / "cases" / "typed_refusals.jsonl"
"""What was typed, and what the line holds: commands and files, settings of a run, models, options that do not apply."""
REFUSALS = [json.loads(line) for line in CASES.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with the files, and no key, server or data of the machine's."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "weights").mkdir()
    for variable in ("OPENAI_API_KEY", "MEDEXAM_DATA", "MEDEXAM_VLLM_PYTHON", "SLURM_JOB_ID"):
        monkeypatch.delenv(variable, raising=False)
    return tmp_path


@pytest.mark.parametrize("case", REFUSALS, ids=lambda case: case["typed"])
def test_a_refusal_is_one_line_with_the_way_out(case, refused, here) -> None:
    if "RUNS" in case["typed"]:
        (here / "runs").mkdir()
    line = refused(*case["typed"].replace("RUNS", str(here / "runs")).split())
    assert case["way_out"] in line
    assert "pydantic" not in line.lower()
