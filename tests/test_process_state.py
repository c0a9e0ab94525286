"""What a run does to the process that it runs in ends with it."""

import gc

import dspy
import pytest
import tqdm
import yaml

import medexam


@pytest.mark.parametrize("reply", ["{Answer: 1}", {"error": "transport"}])
def test_a_run_leaves_garbage_collection_and_dspys_bars_as_they_were(reply, tmp_path) -> None:
    (tmp_path / "replies.yaml").write_text(yaml.safe_dump({"*": reply}))
    model = {"engine": "scripted", "path": str(tmp_path / "replies.yaml")}
    before = gc.get_threshold(), gc.isenabled()
    medexam.run("headqa_sample", model=model, limit=6, runs_dir=tmp_path, track=False, progress=False)
    assert (gc.get_threshold(), gc.isenabled()) == before
    assert dspy.utils.parallelizer.tqdm is tqdm
