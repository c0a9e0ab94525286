"""`medexam reproduce` of a map: the corpus is encoded, projected, drawn and told in numbers."""

import json

import pytest
from typer.testing import CliRunner

from medexam.cli import app
from retrievers.tiny_models import WORDS, save_medcpt


@pytest.mark.nightly
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
    (picture,) = (tmp_path / "pictures").iterdir()
    assert picture.name == "map_sources.png"
