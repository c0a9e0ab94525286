"""Runs that show pictures: what they ask, what their identity covers, and what their pages and traces show."""

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from wire_server import Wire, serving

import medexam
from drawn_pictures import draw, write_own
from medexam.datasets import scale_picture
from medexam.errors import DatasetError
from page_blocks import Page

SHOWN = {"kind": "zero_shot", "images": "shown"}
LARGE = draw((3000, 2000), "JPEG")


@pytest.fixture
def spec(tmp_path) -> dict[str, Any]:
    """Two questions with pictures and one without, asked of a script."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.png").write_bytes(draw())
    (tmp_path / "data" / "b.jpg").write_bytes(LARGE)
    (tmp_path / "replies.yaml").write_text(yaml.safe_dump({"*": "{Answer: 1}"}))
    return {
        "name": "seen",
        "dataset": {"kind": "choice", "path": str(write_own(tmp_path / "data", "a.png", "b.jpg", None))},
        "model": {"engine": "scripted", "path": str(tmp_path / "replies.yaml")},
        "program": SHOWN,
        "trace_questions": 3,
    }


@pytest.fixture
def carry_out(tmp_path):
    return lambda spec, track=False: medexam.run(spec, runs_dir=tmp_path / "runs", track=track, progress=False)


def test_the_wire_sees_each_questions_own_picture_in_front_of_its_words(spec, carry_out) -> None:
    program = {"kind": "chain_of_thought", "answer_format": "guided", "images": "shown"}
    with serving(Wire(sight="reads")) as wire:
        carry_out(spec | {"model": {"engine": "vllm", "endpoints": [wire.address]}, "program": program})
    asked = [body["messages"] for body in wire.bodies("/v1/chat/completions")]
    seen = [turn["content"] for turns in asked for turn in turns if isinstance(turn["content"], list)]
    for stem, content in (("What is drawn in 1?", draw()), ("What is drawn in 2?", LARGE)):
        urls = [parts[0]["image_url"]["url"] for parts in seen if parts[1]["text"].startswith(stem)]
        assert urls == [scale_picture(content, 1024, "")] * 2, "the reasoning, and the answer behind it"
    prompts = [body["prompt"] for body in wire.bodies("/v1/completions")] + asked
    assert any("What is drawn in 3?" in json.dumps(prompt) for prompt in prompts)


def test_the_digest_covers_pictures_where_they_are_asked_and_nowhere_else(spec) -> None:
    both = spec | {"matrix": {"program.images": ["hidden", "shown"]}}

    def digests() -> list[str]:
        return [cell["spec_digest"] for cell in medexam.plan(both).cells]

    hidden, shown = digests()
    (Path(spec["dataset"]["path"]).parent / "a.png").write_bytes(draw((50, 50)))
    assert digests()[0] == hidden != shown != digests()[1]
    assert medexam.plan(spec | {"program": {"kind": "zero_shot"}}).cells[0]["spec_digest"] == hidden


def test_only_the_questions_with_a_picture_are_asked_and_continue_shown(spec, carry_out, tmp_path) -> None:
    (whole,) = carry_out(spec)
    (only,) = medexam.plan(spec, dataset__images="with", runs_dir=tmp_path / "runs").cells
    assert (only["questions"], only["owed"], only["run_id"]) == (2, 0, whole.id)
    assert only["prompt"][-1]["content"].startswith("[picture: image/png, ")
    (Path(spec["dataset"]["path"]).parent / "a.png").unlink()
    with pytest.raises(DatasetError, match="missing 1 picture"):
        medexam.plan(spec)


def test_the_page_holds_each_picture_that_was_asked_once(spec, carry_out, tmp_path) -> None:
    runs = carry_out(spec | {"matrix": {"program.images": ["hidden", "shown"]}})

    def pictures(*runs) -> dict[str, str | None]:
        medexam.report(*runs, html=tmp_path / "page.html")
        items = Page((tmp_path / "page.html").read_text(encoding="utf-8")).data["questions"]
        return {item["key"]: item.get("picture") for item in items}

    shown = base64.b64decode(scale_picture(LARGE, 1024, "").partition(",")[2])
    small = {"q1": scale_picture(draw(), 640, ""), "q2": scale_picture(shown, 640, ""), "q3": None}
    assert pictures(*runs) == small
    assert set(pictures(runs[0]).values()) == {None}
    (Path(spec["dataset"]["path"]).parent / "a.png").write_bytes(draw((50, 50)))
    assert pictures(*runs) == small, "those that were asked"


def test_a_trace_names_the_picture_by_its_hash(spec, carry_out, client, uri) -> None:
    carry_out(spec, track=uri)
    asked = {}
    for trace in client.search_traces(locations=[each.experiment_id for each in client.search_experiments()]):
        (asked[trace.info.tags["medexam.question"]],) = (s for s in trace.data.spans if s.name == "ask")
    shown = scale_picture(draw(), 1024, "").partition(",")[2]
    assert asked["q1"].inputs["pictures"] == [hashlib.sha256(base64.b64decode(shown)).hexdigest()]
    assert asked["q1"].inputs["messages"][-1]["content"].startswith("What is drawn in 1?")
    assert "pictures" not in asked["q3"].inputs
