"""What a run's protocol says, and where those of two runs differ."""

import json
from pathlib import Path

import pytest

LOGS = Path(__file__).parents[2] / "companions" / "harnesses" / "imports" / "logs"


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


def test_two_programs_of_one_model_differ_where_they_differ(medexam, make_run) -> None:
    model = {"engine": "vllm", "name": "a/b", "endpoints": ["http://127.0.0.1:1/v1"]}
    runs = [
        make_run({"kind": "zero_shot", "answer_format": answer_format}, "r", model={**model, "temperature": warmth})
        for answer_format, warmth in (("free", 0.0), ("guided", 0.5))
    ]
    out = " ".join(medexam("compare", *runs, "--protocol")[1].split())
    assert "The runs differ in program, answer, decoding: any of these may explain a difference." in out
    document = json.loads(medexam("compare", *runs, "--protocol", "--json")[1])["protocol"]
    assert document["differing"] == ["program", "answer", "decoding"]
    free, guided = document["runs"].values()
    assert (free["questions"][:3], guided["questions"][:3]) == ("20,", "20,")
    assert free["answer"].startswith("answer format: free, answer form: braces")
    assert guided["answer"].startswith("answer format: guided, answer form: braces, ")
    assert guided["decoding"].startswith("temperature 0.5, max_tokens 64")


def test_runs_of_the_same_protocol_have_no_table(medexam, make_run) -> None:
    runs = [make_run({"kind": "random"}, "r"), make_run({"kind": "random"}, "w")]
    out = " ".join(medexam("compare", *runs, "--protocol")[1].split())
    assert "The runs' protocols do not differ." in out
    assert "Protocol: random" not in out


def test_an_imported_run_tells_what_its_files_say(protocol_of) -> None:
    (path,) = LOGS.glob("samples_headqa_en_letters_*.jsonl")
    found = protocol_of(path, "--measure", "exact_match-strict-match")
    assert found["harness"] == "lm-evaluation-harness 0.4.13"
    assert found["normalisation"] == "ignore case, ignore punctuation"
    assert found["decoding"] == "until ['\\n'], max_gen_toks 8, do_sample False"


def test_a_plain_table_tells_nothing_and_nobody_guesses(protocol_of, tmp_path) -> None:
    (tmp_path / "answers.csv").write_text("question,answer\nheadqa-v1/2013/biology/8,2\n")
    found = protocol_of(tmp_path / "answers.csv")
    assert {name for name, said in found.items() if said == "not told"} == {
        *("model", "prompt", "demonstrations", "passages", "normalisation", "decoding", "their data")
    }
