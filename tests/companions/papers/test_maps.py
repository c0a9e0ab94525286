"""`medexam reproduce` of a map: the corpus is encoded, projected, drawn and told in numbers."""

import json

import pytest
from typer.testing import CliRunner

from medexam.cli import app
from medexam.errors import SpecError
from retrievers.tiny_models import WORDS, save_medcpt


@pytest.mark.usefixtures("compiled_umap")
def test_the_map_of_a_corpus_at_hand(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("MEDEXAM_CACHE", str(tmp_path / "cache"))
    rows = [{"id": f"p{n}", "content": f"{WORDS[n % 7]} {n}", "source": "odd" if n % 2 else "even"} for n in range(40)]
    (tmp_path / "corpus.jsonl").write_text("\n".join(map(json.dumps, rows)))
    save_medcpt(tmp_path / "encoder")
    dataset = ("dataset.name=headqa_sample", "dataset.limit=12")
    retriever = (f"retriever.corpus={tmp_path / 'corpus.jsonl'}", f"retriever.encoder={tmp_path / 'encoder'}")
    arguments = [word for one in (*dataset, *retriever) for word in ("--set", one)]
    plan = CliRunner().invoke(app, ["reproduce", "headqa-v2/figure-9", "--plan", *arguments], catch_exceptions=False)
    assert "12 questions" in plan.output or "40 passages" in plan.output
    asked = ["reproduce", "headqa-v2/figure-9", *arguments, "--out", str(tmp_path / "pictures"), "--json"]
    done = CliRunner().invoke(app, asked, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["passages"]["by_source"] == {"even": 20, "odd": 20}
    assert told["questions"]["drawn"] == 12
    for number in (10, 11):
        other = [f"headqa-v2/figure-{number}" if word == "headqa-v2/figure-9" else word for word in asked]
        assert CliRunner().invoke(app, other, catch_exceptions=False).exit_code == 0
    pictures = {path.name: path.read_bytes() for path in (tmp_path / "pictures").iterdir()}
    assert set(pictures) == {"map_sources.png", "map_questions.png", "map_each_discipline.png"}
    assert len(set(pictures.values())) == 3


def test_only_vectors_can_be_drawn() -> None:
    for setting, said in (("retriever.kind=bm25", "take medcpt or dense"), ("model=embedded", "is a map")):
        with pytest.raises(SpecError, match=said):
            CliRunner().invoke(app, ["reproduce", "headqa-v2/figure-10", "--set", setting], catch_exceptions=False)
