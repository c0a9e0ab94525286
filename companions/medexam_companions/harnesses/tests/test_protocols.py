"""What the protocol of an imported run says: what its files state, and nothing else."""

import json
from pathlib import Path

import pytest

LOGS = Path(__file__).parent / "imports" / "logs"


@pytest.fixture
def protocol_of(medexam, tmp_path):
    """The protocol of a file of another harness's results, once it is imported."""

    def read(path, *options):
        code, _, err = medexam(
            "import", path, "--set", "dataset.name=headqa_sample", "--runs-dir", tmp_path / "in", *options
        )
        assert code == 0, err
        (document,) = json.loads(medexam("report", tmp_path / "in", "--protocol", "--json")[1])
        return document["protocol"]

    return read


def test_an_imported_run_tells_what_its_files_say(protocol_of) -> None:
    (path,) = LOGS.glob("samples_headqa_en_letters_*.jsonl")
    found = protocol_of(path, "--measure", "exact_match-strict-match")
    assert found["harness"] == "lm-evaluation-harness 0.4.13"
    assert found["normalisation"] == "ignore_case True, ignore_punctuation True"
    assert found["decoding"] == "until ['\\n'], max_gen_toks 8, do_sample False"


def test_a_plain_table_tells_nothing_and_nobody_guesses(protocol_of, tmp_path) -> None:
    (tmp_path / "answers.csv").write_text("question,answer\nheadqa-v1/2013/biology/8,2\n")
    found = protocol_of(tmp_path / "answers.csv")
    assert {name for name, said in found.items() if said == "not told"} == {
        *("model", "prompt", "demonstrations", "passages", "normalisation", "decoding", "their data")
    }
