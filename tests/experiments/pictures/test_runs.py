"""Runs that show pictures: what they ask, what their identity covers, and what their pages and traces show."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from wire_server import Wire, serving

from drawn_pictures import draw, write_own
from medexam.datasets import scale_picture
from medexam.errors import DatasetError, RunFolderError, SpecError
from medexam.experiments import Runner, plan_document, plan_experiment, plan_optimization, plan_resume
from medexam.experiments.report.page import question_pictures as shown_on_page
from medexam.experiments.report.page import write_page
from medexam.experiments.report.page.blocks import Block
from medexam.experiments.track.runs import track
from medexam.experiments.track.traces import read_traces
from page_blocks import unpack
from watching import Silent

SHOWN = {"kind": "zero_shot", "images": "shown"}


@pytest.fixture
def spec(tmp_path) -> dict[str, Any]:
    """Two questions with pictures and one without, asked of a script."""
    data = tmp_path / "data"
    data.mkdir()
    (data / "a.png").write_bytes(draw())
    (data / "b.jpg").write_bytes(draw((3000, 2000), "JPEG"))
    replies = tmp_path / "replies.yaml"
    replies.write_text(yaml.safe_dump({"*": "{Answer: 1}"}))
    return {
        "name": "seen",
        "dataset": {"kind": "choice", "path": str(write_own(data, "a.png", "b.jpg", None))},
        "model": {"engine": "scripted", "path": str(replies)},
        "program": SHOWN,
        "trace_questions": 3,
    }


def planned(spec: dict[str, Any], tmp_path: Path, **overrides: Any):
    return plan_experiment(spec, overrides, runs_dir=tmp_path / "runs")


def carry_out(spec: dict[str, Any], tmp_path: Path, **overrides: Any):
    runs, stop = Runner(planned(spec, tmp_path, **overrides), Silent()).run()
    assert stop is None
    return runs


def test_the_wire_sees_each_questions_own_picture(spec, tmp_path) -> None:
    with serving(Wire(sight="reads")) as wire:
        model = {"engine": "vllm", "endpoints": [wire.address]}
        carry_out(spec | {"model": model}, tmp_path)
    asked = [body["messages"][-1]["content"] for body in wire.bodies("/v1/chat/completions")]
    seen = {parts[1]["text"]: parts[0]["image_url"]["url"] for parts in asked if isinstance(parts, list)}
    expected = {"What is drawn in 1?": draw(), "What is drawn in 2?": draw((3000, 2000), "JPEG")}
    for stem, content in expected.items():
        (url,) = [url for text, url in seen.items() if text.startswith(stem)]
        assert url == scale_picture(content, 1024, "")
    prompts = [body["prompt"] for body in wire.bodies("/v1/completions")] + asked
    assert any("What is drawn in 3?" in json.dumps(prompt) for prompt in prompts)


def test_the_digest_covers_pictures_where_they_are_asked_and_nowhere_else(spec, tmp_path) -> None:
    def digests() -> list[str]:
        cells = planned(spec | {"matrix": {"program.images": ["hidden", "shown"]}}, tmp_path).cells
        return [cell.spec_digest for cell in cells]

    hidden, shown = digests()
    assert hidden != shown
    (Path(spec["dataset"]["path"]).parent / "a.png").write_bytes(draw((50, 50)))
    assert digests()[0] == hidden
    assert digests()[1] != shown
    plain = planned(spec | {"program": {"kind": "zero_shot"}}, tmp_path).cells[0]
    assert plain.spec_digest == hidden
    assert "images" not in json.dumps(plain.identity)


def test_only_asks_the_questions_with_a_picture_and_continues_shown(spec, tmp_path) -> None:
    (whole,) = carry_out(spec, tmp_path)
    (only,) = planned(spec, tmp_path, **{"program.images": "only"}).cells
    assert [question.key for question in only.question_set.questions] == ["q1", "q2"]
    assert (only.run_id, only.pending) == (whole.record.run_id, ())


def test_a_run_whose_unasked_pictures_are_gone_continues(spec, tmp_path) -> None:
    (run,) = carry_out(spec | {"dataset": spec["dataset"] | {"limit": 1}}, tmp_path)
    resumed = plan_resume(run.record.run_id, runs_dir=tmp_path / "runs").cells[0]
    assert resumed.spec_digest == run.record.spec_digest
    folder = Path(spec["dataset"]["path"]).parent
    (asked,) = run.record.questions
    gone = folder / ("b.jpg" if asked == "q1" else "a.png")
    gone.unlink()
    with pytest.raises(RunFolderError, match="pictures"):
        plan_resume(run.record.run_id, runs_dir=tmp_path / "runs")
    with pytest.raises(DatasetError, match="missing 1 picture"):
        planned(spec, tmp_path)


def test_a_plan_names_the_picture_of_its_prompt(spec, tmp_path) -> None:
    (entry,) = plan_document(planned(spec, tmp_path))
    assert entry["prompt"][-1]["content"].startswith("[picture: image/png, ")


def test_passages_and_reasoning_leave_the_picture_in_its_place(spec, tmp_path) -> None:
    program = {"kind": "chain_of_thought", "answer_format": "guided", "images": "only", "image_side": 64}
    with serving(Wire(sight="reads")) as wire:
        model = {"engine": "vllm", "endpoints": [wire.address]}
        (run,) = carry_out(spec | {"model": model, "program": program}, tmp_path)
    assert all(one.answer == 1 for one in run.folder.read_predictions().values())
    bodies = [body for body in wire.bodies("/v1/chat/completions") if "What is drawn" in json.dumps(body)]
    assert len(bodies) == 4
    assert all(body["messages"][-1]["content"][0]["type"] == "image_url" for body in bodies)
    guided = [body["structured_outputs"]["regex"] for body in bodies if "structured_outputs" in body]
    assert guided == [r"hello\n\n\{Answer: (1|2|3)".replace(r"\n", "\n")] * 2


def entries(runs, tmp_path: Path) -> dict[str, dict[str, Any]]:
    """What the page holds of each question."""
    path = tmp_path / "page.html"
    write_page(runs, path)
    text = path.read_text(encoding="utf-8")
    assert "img-src data:" in text
    (packed,) = re.findall(r'id="block-part-0"[^>]*>([^<]+)<', text)
    return {entry["key"]: entry for entry in unpack(Block("part-0", packed))["items"]}


def test_the_page_holds_each_picture_once(spec, tmp_path) -> None:
    runs = carry_out(spec | {"matrix": {"program.images": ["hidden", "shown"]}}, tmp_path)
    found = entries(runs, tmp_path)
    assert {key: entry.get("picture") for key, entry in found.items()} == {
        "q1": scale_picture(draw(), shown_on_page.SIDE, ""),
        "q2": scale_picture(draw((3000, 2000), "JPEG"), shown_on_page.SIDE, ""),
        "q3": None,
    }
    assert json.dumps(found).count("data:image/") == 2
    hidden = entries(runs[:1], tmp_path)
    assert not any("picture" in entry for entry in hidden.values())


def test_the_page_shows_no_picture_that_was_not_asked_or_is_too_large(spec, tmp_path, monkeypatch) -> None:
    runs = carry_out(spec, tmp_path)
    monkeypatch.setattr(shown_on_page, "LARGEST", len(scale_picture(draw(), shown_on_page.SIDE, "")))
    assert [key for key, entry in entries(runs, tmp_path).items() if "picture" in entry] == ["q1"]
    monkeypatch.setattr(shown_on_page, "ALL_PICTURES", 10)
    assert not any("picture" in entry for entry in entries(runs, tmp_path).values())
    monkeypatch.undo()
    (Path(spec["dataset"]["path"]).parent / "a.png").write_bytes(draw((50, 50)))
    assert not any("picture" in entry for entry in entries(runs, tmp_path).values())


def test_a_trace_shows_the_picture_in_its_conversation(spec, tmp_path, client, uri) -> None:
    (run,) = carry_out(spec, tmp_path)
    (tracked,) = track([run], tracking_uri=uri)
    found = client.search_traces(locations=[tracked.experiment_id], run_id=tracked.mlflow_run_id)
    by_question = {trace.info.tags["medexam.question"]: trace for trace in found}
    (ask,) = [span for span in by_question["q1"].data.spans if span.name == "ask"]
    picture, words = ask.inputs["messages"][-1]["content"]
    assert picture == {"type": "image_url", "image_url": {"url": scale_picture(draw(), 1024, "")}}
    assert words["text"].startswith("What is drawn in 1?")
    (plain,) = [span for span in by_question["q3"].data.spans if span.name == "ask"]
    assert isinstance(plain.inputs["messages"][-1]["content"], str)


def test_several_replies_are_traced_with_the_picture(spec, tmp_path) -> None:
    model = spec["model"] | {"temperature": 0.7}
    (run,) = carry_out(spec | {"model": model, "program": SHOWN | {"samples": 2}}, tmp_path)
    (trace,) = [trace for trace in read_traces(run) if trace.question.key == "q2"]
    asked = [step for step in trace.steps if step.kind == "CHAT_MODEL"]
    assert [step.inputs["messages"][-1]["content"][0]["type"] for step in asked] == ["image_url"] * 2


def test_an_optimizer_shows_no_pictures(spec, tmp_path) -> None:
    split = {"train": {"years": [2013]}, "validation": {"years": [2014]}}
    optimizer = {"kind": "labeled", **split}
    document = spec | {"dataset": {"name": "headqa_sample"}, "optimizer": optimizer}
    with pytest.raises(SpecError, match=r"program\.images: an optimizer's demonstrations have no pictures"):
        plan_optimization(document, {}, runs_dir=tmp_path)
