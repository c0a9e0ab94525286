"""Native tools, schemas and streams in modules of one's own: what the engine declares, sends, reads and keeps."""

import asyncio
import json
from pathlib import Path

import dspy
import pytest
import yaml
from wire_server import Wire, serving

from medexam.errors import SpecError
from medexam.experiments import Runner, build_lm, plan_experiment
from medexam.experiments.plan.conversations import conversation
from medexam.predictions import Status
from medexam.programs import read_again
from medexam.serve import ScriptedEngine
from medexam.specs import ModelSpec
from watching import Silent

AGENT = """
import dspy

class Agent(dspy.Module):
    def __init__(self):
        super().__init__()
        self.agent = dspy.ReActV2("question -> answer: int", tools=[self.look_up], max_iters=3)

    def look_up(self, words: str) -> str:
        "Look words up."
        return f"found {words}"

    def forward(self, question: str):
        with dspy.context(adapter=dspy.ChatAdapter(use_native_function_calling=True)):
            return self.agent(question=question)
"""
REPLIES = {
    "found scurvy": {"tool_calls": [{"name": "submit", "args": {"answer": 2}}]},
    "*": {"tool_calls": [{"name": "look_up", "args": {"words": "scurvy"}}]},
}


def ask(tmp_path: Path, source: str, name: str, model: dict, **program):
    (tmp_path / "mine.py").write_text(source)
    document = {
        "name": "own",
        "dataset": {"name": "headqa_sample", "limit": 2},
        "model": model,
        "program": {"kind": f"{tmp_path / 'mine.py'}:{name}", **program},
    }
    planned = plan_experiment(document, {}, runs_dir=tmp_path / "runs")
    (stored,), _ = Runner(planned, Silent()).run()
    return planned, stored


def scripted(tmp_path: Path, replies: dict) -> dict:
    (tmp_path / "replies.yaml").write_text(yaml.safe_dump(replies, sort_keys=False))
    return {"engine": "scripted", "path": str(tmp_path / "replies.yaml")}


def test_an_agent_calls_tools_without_a_word_and_its_calls_are_kept(tmp_path) -> None:
    planned, stored = ask(tmp_path, AGENT, "Agent", scripted(tmp_path, REPLIES))
    for said in stored.folder.read_predictions().values():
        assert (said.status, said.answer) == (Status.ANSWERED, 2), said.failure
        assert [[call.name for call in reply.tool_calls] for reply in said.generations] == [["look_up"], ["submit"]]
        assert said.generations[0].tool_calls[0].args == {"words": "scurvy"}
    (cell,) = planned.cells
    questions = list(cell.question_set.questions)
    program = cell.build_preview(questions)
    for question in questions:
        said = stored.folder.read_predictions()[question.key]
        assert read_again(program, question, said).answer == 2
        exchanges = conversation(program, question, said)
        assert len(exchanges) == 2
        assert any("found scurvy" in turn["content"] for turn in exchanges[1].turns)


def test_a_model_that_declares_no_tools_is_offered_them_in_words(tmp_path) -> None:
    calls = '{"tool_calls": [{"name": "submit", "args": {"answer": 3}}]}'
    reply = f"[[ ## next_thought ## ]]\nI know.\n\n[[ ## tool_calls ## ]]\n{calls}\n\n[[ ## completed ## ]]"
    _, stored = ask(tmp_path, AGENT, "Agent", scripted(tmp_path, {"*": reply}))
    for said in stored.folder.read_predictions().values():
        assert (said.status, said.answer) == (Status.ANSWERED, 3), said.failure
        assert not said.generations[0].tool_calls


class ToolWire(Wire):
    """A server whose model calls the tool that it is offered, or `submit`, and keeps to schemas."""

    def _chat(self, body):
        words = [turn for turn in body["messages"] if turn["role"] != "tool" and turn.get("content")]
        status, reply = super()._chat(body | {"messages": words, "response_format": None})
        message = {"role": "assistant", "content": "hello"}
        schema = ((body.get("response_format") or {}).get("json_schema") or {}).get("schema")
        if body.get("tools"):
            names = [tool["function"]["name"] for tool in body["tools"]]
            looked_up = any(turn["role"] == "tool" for turn in body["messages"])
            name = "submit" if looked_up and "submit" in names else names[0]
            args = json.dumps({"answer": 2} if name == "submit" else {"words": "scurvy"})
            message = {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": name, "arguments": args}}],
            }
        elif schema:
            message["content"] = json.dumps(
                {name: (field.get("enum") or [1])[0] for name, field in schema["properties"].items()}
            )
        reply["choices"] = [
            {"index": 0, "message": message, "finish_reason": "tool_calls" if body.get("tools") else "stop"}
        ]
        return status, reply


@pytest.fixture(params=["vllm", "litellm"])
def served(request):
    """`served(wire)` -> the model part of a spec whose server is the wire, by either engine."""

    def model(wire: Wire) -> dict:
        name = "tiny" if request.param == "vllm" else "hosted_vllm/tiny"
        return {"engine": request.param, "name": name, "endpoints": [wire.address]}

    return model


def test_tools_go_over_the_wire_in_its_own_form(tmp_path, served) -> None:
    with serving(ToolWire()) as wire:
        _, stored = ask(tmp_path, AGENT, "Agent", served(wire))
    for said in stored.folder.read_predictions().values():
        assert (said.status, said.answer) == (Status.ANSWERED, 2), said.failure
    asked = [
        body for body in wire.bodies("/v1/chat/completions") if any(turn["role"] == "tool" for turn in body["messages"])
    ]
    assert asked
    assert all({"look_up", "submit"} == {tool["function"]["name"] for tool in body["tools"]} for body in asked)


def test_a_server_without_tools_and_schemas_is_asked_in_words(tmp_path, served) -> None:
    with serving(Wire(refused_fields=("tools", "response_format"), structured=False)) as wire:
        ask(tmp_path, AGENT, "Agent", served(wire))
    asked = wire.bodies("/v1/chat/completions") + wire.bodies("/v1/completions")
    assert any("tool_calls" in json.dumps(body) and "tools" not in body for body in asked)


PLAIN = """
import dspy

class Plain(dspy.Module):
    def __init__(self):
        super().__init__()
        self.ask = dspy.Predict("question -> answer: int, sure: bool")

    def forward(self, question: str):
        return self.ask(question=question)
"""


def test_the_json_adapter_sends_a_schema_where_the_server_holds_replies_to_it(tmp_path, served) -> None:
    with serving(ToolWire()) as wire:
        _, stored = ask(tmp_path, PLAIN, "Plain", served(wire), adapter="json")
    assert {said.answer for said in stored.folder.read_predictions().values()} == {1}
    schemas = [
        body["response_format"]["json_schema"]["schema"]
        for body in wire.bodies("/v1/chat/completions")
        if body.get("response_format")
    ]
    assert sum(schema["properties"].keys() == {"answer", "sure"} for schema in schemas) == 2


@pytest.mark.parametrize("answer", ["4", "four, as two and two have always been\nsince numbers are written"])
@pytest.mark.parametrize("waits", [False, True])
def test_a_stream_brings_each_field_to_its_listener_and_the_whole_reply(tmp_path, answer: str, waits: bool) -> None:
    engine = ScriptedEngine({"*": f"[[ ## reasoning ## ]]\nCounting.\n\n[[ ## answer ## ]]\n{answer}\n"})
    lm = build_lm(ModelSpec(engine="scripted", path=tmp_path), engine)
    with dspy.context(lm=lm):
        program = dspy.streamify(
            dspy.ChainOfThought("question -> answer"),
            stream_listeners=[dspy.streaming.StreamListener("answer")],
            async_streaming=not waits,
        )

        async def read() -> list:
            return [chunk async for chunk in program(question="2 + 2?")]

        *chunks, last = list(program(question="2 + 2?")) if waits else asyncio.run(read())
    assert last.answer == answer
    assert "".join(chunk.chunk for chunk in chunks).strip() == answer


def test_an_adapter_is_named_by_its_class(tmp_path) -> None:
    reply = "<answer>\n3\n</answer>\n<sure>\nTrue\n</sure>"
    (tmp_path / "mine_too.py").write_text("import dspy\n\nclass Loud(dspy.XMLAdapter):\n    pass\n")
    digests = set()
    for adapter in ("xml", "dspy.XMLAdapter", f"{tmp_path / 'mine_too.py'}:Loud"):
        planned, stored = ask(tmp_path, PLAIN, "Plain", scripted(tmp_path, {"*": reply}), adapter=adapter)
        assert {said.answer for said in stored.folder.read_predictions().values()} == {3}
        digests.add(planned.cells[0].spec_digest)
    assert len(digests) == 2
    (tmp_path / "elsewhere").mkdir()
    moved = (tmp_path / "mine_too.py").rename(tmp_path / "elsewhere" / "mine_too.py")
    planned, _ = ask(tmp_path, PLAIN, "Plain", scripted(tmp_path, {"*": reply}), adapter=f"{moved}:Loud")
    assert planned.cells[0].spec_digest in digests


def test_an_adapter_takes_arguments(tmp_path) -> None:
    source = AGENT.replace("with dspy.context(adapter=dspy.ChatAdapter(use_native_function_calling=True)):", "if True:")
    native = {"adapter_args": {"use_native_function_calling": True}}
    _, stored = ask(tmp_path, source, "Agent", scripted(tmp_path, REPLIES), **native)
    assert {said.answer for said in stored.folder.read_predictions().values()} == {2}


def test_the_two_step_adapter_has_the_runs_model_extract(tmp_path) -> None:
    fields = "[[ ## answer ## ]]\n4\n\n[[ ## sure ## ]]\nTrue\n\n[[ ## completed ## ]]"
    replies = {"I think that it is the fourth": fields, "*": "I think that it is the fourth."}
    _, stored = ask(tmp_path, PLAIN, "Plain", scripted(tmp_path, replies), adapter="dspy.TwoStepAdapter")
    for said in stored.folder.read_predictions().values():
        assert (said.answer, len(said.generations)) == (4, 2), said.failure


@pytest.mark.parametrize(
    ("adapter", "says"),
    [
        ("dspy.Predict", "is not a subclass of dspy.Adapter: use chat, json, xml, dspy.TwoStepAdapter"),
        ("dspy.YAMLAdapter", "dspy has no 'YAMLAdapter'"),
        ("yaml", "is none of chat, json, xml"),
    ],
)
def test_what_is_no_adapter_is_refused_before_anything_is_asked(tmp_path, adapter, says) -> None:
    with pytest.raises(SpecError, match=says):
        ask(tmp_path, PLAIN, "Plain", scripted(tmp_path, {"*": "x"}), adapter=adapter)
