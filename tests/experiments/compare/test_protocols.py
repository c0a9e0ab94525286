"""What a run's protocol says, and where those of two runs differ."""

import json


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
    assert free["answer"].startswith("answer_format free, answer_form braces")
    assert guided["answer"].startswith("answer_format guided, answer_form braces")
    assert guided["decoding"].startswith("temperature 0.5, max_tokens 64")


def test_runs_of_the_same_protocol_have_no_table(medexam, make_run) -> None:
    runs = [make_run({"kind": "random"}, "r"), make_run({"kind": "random"}, "w")]
    out = " ".join(medexam("compare", *runs, "--protocol")[1].split())
    assert "The runs' protocols do not differ." in out
    assert "Protocol: random" not in out
