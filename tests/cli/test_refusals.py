"""What cannot be done is one line that names the way out, and exit code 2: the likeliest mistakes.

A row of `typed_refusals.jsonl` is what was typed and what the line holds: commands and files, settings of a run,
models, options that do not apply. `refused_texts.jsonl` has the files.
"""

import pytest

from table_cases import read_cases


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with the files, and no key, server or data of the machine's."""
    for file in read_cases("refused_texts"):
        (tmp_path / file.id).write_text(file.values[0]["text"])
    (tmp_path / "weights").mkdir()
    for variable in ("OPENAI_API_KEY", "MEDEXAM_DATA", "MEDEXAM_VLLM_PYTHON", "SLURM_JOB_ID"):
        monkeypatch.delenv(variable, raising=False)
    return tmp_path


@pytest.mark.parametrize("case", read_cases("typed_refusals"))
def test_a_refusal_is_one_line_with_the_way_out(case, refused, here) -> None:
    if "RUNS" in case["typed"]:
        (here / "runs").mkdir()
    line = refused(*case["typed"].replace("RUNS", str(here / "runs")).split())
    assert case["way_out"] in line
    assert "pydantic" not in line.lower()
