"""The corpus map, figures 9 to 11 of HEAD-QA v2, of a small corpus by the command line."""

import json

import pytest

from retrievers.tiny_models import WORDS, save_medcpt


@pytest.fixture
def draw(medexam, tmp_path):
    """`draw("figure-9", 40)`: the figure of a corpus of that many passages; exit code, standard output and error."""
    save_medcpt(tmp_path / "encoder")

    def call(figure, passages, *words):
        rows = [
            {"id": f"p{n}", "content": f"{WORDS[n % 7]} {WORDS[n % 11]} {n}", "source": "odd" if n % 2 else "even"}
            for n in range(passages)
        ]
        (tmp_path / "corpus.jsonl").write_text("\n".join(map(json.dumps, rows)))
        retriever = ("--set", "retriever.corpus=corpus.jsonl", "--set", "retriever.encoder=./encoder")
        return medexam("reproduce", f"headqa-v2/{figure}", *retriever, "--set", "dataset.name=headqa_sample", *words)

    return call


@pytest.mark.nightly
def test_a_map_is_drawn_and_told(draw, tmp_path) -> None:
    code, out, err = draw("figure-9", 40, "--json", "--out", "first")
    assert code == 0, err
    told = json.loads(out)
    assert told["passages"] == {"drawn": 40, "by_source": {"even": 20, "odd": 20}}
    assert sum(told["questions"]["by_discipline"].values()) == 120
    assert 0 < told["trustworthiness"] <= 1
    code, out, _ = draw("figure-9", 40, "--out", "again")
    picture = "map_sources.png"
    assert (tmp_path / "again" / picture).read_bytes() == (tmp_path / "first" / picture).read_bytes()
    assert "40 passages of corpus" in out
    for figure in ("figure-10", "figure-11"):
        assert draw(figure, 40, "--out", "first")[0] == 0
    assert {path.name for path in (tmp_path / "first").iterdir()} == {
        picture,
        "map_density.png",
        "map_questions.png",
    }


def test_a_corpus_of_few_passages_is_refused(draw) -> None:
    code, out, err = draw("figure-9", 3)
    assert (code, out, "3 passages are too few for a map" in err) == (2, "", True), err
