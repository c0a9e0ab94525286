"""`medexam index` on the command line, over passages that MiniLM encodes."""

import json

from command_line import _untracked, medexam

__all__ = ["_untracked", "medexam"]


def test_an_index_is_built_once_told_and_refused_where_there_is_none(medexam, tmp_path) -> None:
    rows = [{"id": str(n), "title": "", "content": f"passage {n}"} for n in range(9)]
    (tmp_path / "c.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    build = ("index", "build", "--corpus", "c.jsonl", "--encoder", "minilm", "--out", "index")
    code, built, err = medexam(*build, "--json")
    assert code == 0, err
    vectors = [(path.name, path.stat().st_mtime_ns) for path in (tmp_path / "index").glob("data-*")]
    assert medexam(*build, "--json")[:2] == (0, built)
    assert [(path.name, path.stat().st_mtime_ns) for path in (tmp_path / "index").glob("data-*")] == vectors
    _, told, _ = medexam("index", "info", "index")
    assert told.count("sha256.") == 3
    assert json.loads(medexam("index", "info", "index", "--json")[1]) == json.loads(built)
    code, told, err = medexam(*build, "--factory", "HNSW8", "--parameters", "efSearch=64")
    assert code == 0, err
    assert "HNSW8" in told
    code, _, err = medexam(*build, "--factory", "Magic3")
    assert (code, "medexam: FAISS makes no index 'Magic3'" in err) == (2, True)
    code, _, err = medexam(*build, "--parameters", "nprobe=3")
    assert (code, "needs --factory" in err) == (2, True)
    code, _, err = medexam("index", "info", ".")
    assert (code, "holds no index" in err) == (2, True)
