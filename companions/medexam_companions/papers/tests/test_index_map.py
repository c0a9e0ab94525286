"""`medexam index map` as a user meets it: built, drawn and handed to a run by the command line alone."""

import json

import pytest

from retrievers.tiny_models import WORDS, save_medcpt


@pytest.fixture
def index(medexam, tmp_path):
    rows = [
        {"id": f"p{n}", "content": f"{WORDS[n % 7]} {WORDS[n % 11]} {n}", "source": "odd" if n % 2 else "even"}
        for n in range(40)
    ]
    (tmp_path / "corpus.jsonl").write_text("\n".join(map(json.dumps, rows)))
    save_medcpt(tmp_path / "encoder")
    out = tmp_path / "index"
    code, _, err = medexam("index", "build", "--corpus", "corpus.jsonl", "--encoder", "./encoder", "--out", out)
    assert code == 0, err
    return out


def test_questions_in_a_language_that_the_encoder_does_not_read(medexam, index, tmp_path) -> None:
    (tmp_path / "encoder" / "query-encoder" / "README.md").write_text("---\nlanguage: en\n---\n")
    asked = ("index", "map", index, "--dataset", "headqa_sample", "--sample", 3)
    assert "encoder reads en and not es" in medexam(*asked, "--language", "es")[2]
    assert "reads en" not in medexam(*asked)[2]


@pytest.mark.nightly
def test_a_map_is_drawn_and_told(medexam, index, tmp_path) -> None:
    questions = ("--dataset", "headqa_sample")
    code, out, err = medexam("index", "map", index, *questions, "--json")
    assert code == 0, err
    told = json.loads(out)
    assert told["map"] == str(index / "map.png")
    assert told["passages"] == {"in_index": 40, "drawn": 40, "by_source": {"even": 20, "odd": 20}}
    assert sum(told["questions"]["by_discipline"].values()) == 120
    assert 0 < told["trustworthiness"] <= 1
    assert "fit 40 of 40 passages ..." in err
    first = (index / "map.png").read_bytes()
    code, out, _ = medexam("index", "map", index, *questions, "--out", "again.png")
    assert (tmp_path / "again.png").read_bytes() == first
    assert "passages: even 20, odd 20" in out


def test_what_cannot_be_drawn_is_said_in_one_line(medexam, index, tmp_path) -> None:
    (tmp_path / "file").write_text("in the way")
    cases = {
        ("map", tmp_path / "absent", "--dataset", "headqa_sample"): "holds no index; make one with",
        ("map", index, "--dataset", "headqa_samples"): "headqa_samples",
        ("map", index, "--dataset", "headqa_sample", "--sample", 3): "3 passages are too few for a map",
        ("map", index, "--dataset", "headqa_sample", "--out", "file/map.png"): "choose another place with --out",
    }
    for arguments, said in cases.items():
        code, out, err = medexam("index", *arguments)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert said in err
    code, _, err = medexam("index", "map", index, "--dataset", "headqa_sample", "--out", "map.gif")
    assert (code, ".png" in err) == (2, True)
    assert not (index / "map.png").exists()
