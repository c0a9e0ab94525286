"""Native tools and schemas in modules of one's own: what is declared, sent, read and kept."""

import json
from pathlib import Path

import pytest
from wire_server import Wire, serving

import medexam
from medexam.errors import SpecError
from medexam.predictions import Status
from medexam.retrievers import load_corpus

ROOT = Path(__file__).parents[2]
CORPUS = ROOT / "tests" / "retrievers" / "corpus_sample" / "passages.jsonl.gz"
AGENT = """
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
PLAIN = """
class Plain(dspy.Module):
    def __init__(self):
        super().__init__()
        self.ask = dspy.Predict("question -> answer: int, sure: bool")

    def forward(self, question: str):
        return self.ask(question=question)
"""
REPLIES = {
    "found scurvy": {"tool_calls": [{"name": "submit", "args": {"answer": 2}}]},
    "*": {"tool_calls": [{"name": "look_up", "args": {"words": "scurvy"}}]},
}


def said_in(run):
    return list(run.predictions.values())


def test_an_agent_calls_tools_without_a_word_and_its_calls_are_kept(own_run) -> None:
    for said in said_in(own_run(AGENT, "Agent", REPLIES)):
        assert (said.status, said.answer) == (Status.ANSWERED, 2), said.failure
        assert [[call.name for call in reply.tool_calls] for reply in said.calls] == [["look_up"], ["submit"]]
        assert said.calls[0].tool_calls[0].args == {"words": "scurvy"}


def test_a_model_that_declares_no_tools_is_offered_them_in_words(own_run) -> None:
    calls = '{"tool_calls": [{"name": "submit", "args": {"answer": 3}}]}'
    reply = f"[[ ## next_thought ## ]]\nI know.\n\n[[ ## tool_calls ## ]]\n{calls}\n\n[[ ## completed ## ]]"
    for said in said_in(own_run(AGENT, "Agent", {"*": reply})):
        assert (said.status, said.answer) == (Status.ANSWERED, 3), said.failure
        assert not said.calls[0].tool_calls


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
            call = {"id": "call_1", "type": "function", "function": {"name": name, "arguments": args}}
            message = {"role": "assistant", "content": None, "tool_calls": [call]}
        elif schema:
            fields = {name: (field.get("enum") or [1])[0] for name, field in schema["properties"].items()}
            message["content"] = json.dumps(fields)
        finish = "tool_calls" if body.get("tools") else "stop"
        reply["choices"] = [{"index": 0, "message": message, "finish_reason": finish}]
        return status, reply


@pytest.fixture(params=["vllm", "litellm"])
def served(request):
    """`served(wire)` -> the model part of a spec whose server is the wire, by either engine."""

    def model(wire: Wire) -> dict:
        name = "tiny" if request.param == "vllm" else "hosted_vllm/tiny"
        return {"engine": request.param, "name": name, "endpoints": [wire.address]}

    return model


def test_tools_go_over_the_wire_in_its_own_form(own_run, served) -> None:
    with serving(ToolWire()) as wire:
        for said in said_in(own_run(AGENT, "Agent", {"*": "x"}, limit=2, model=served(wire))):
            assert (said.status, said.answer) == (Status.ANSWERED, 2), said.failure
    bodies = wire.bodies("/v1/chat/completions")
    asked = [body for body in bodies if any(turn["role"] == "tool" for turn in body["messages"])]
    assert asked
    assert all({"look_up", "submit"} == {tool["function"]["name"] for tool in body["tools"]} for body in asked)


def test_a_server_without_tools_and_schemas_is_asked_in_words(own_run, served) -> None:
    with serving(Wire(refused_fields=("tools", "response_format"))) as wire:
        own_run(AGENT, "Agent", {"*": "x"}, limit=2, model=served(wire))
    asked = wire.bodies("/v1/chat/completions") + wire.bodies("/v1/completions")
    assert any("tool_calls" in json.dumps(body) and "tools" not in body for body in asked)


def test_the_json_adapter_sends_a_schema_where_the_server_holds_replies_to_it(own_run, served) -> None:
    with serving(ToolWire()) as wire:
        run = own_run(PLAIN, "Plain", {"*": "x"}, limit=2, model=served(wire), adapter="json")
    assert {said.answer for said in said_in(run)} == {1}
    formats = [body.get("response_format") for body in wire.bodies("/v1/chat/completions")]
    schemas = [one["json_schema"]["schema"]["properties"].keys() for one in formats if one]
    assert schemas.count({"answer", "sure"}) == 2


def test_an_adapter_is_named_by_its_class_and_its_source_counts(own_run, tmp_path) -> None:
    reply = "<answer>\n3\n</answer>\n<sure>\nTrue\n</sure>"
    (tmp_path / "loud.py").write_text("import dspy\n\nclass Loud(dspy.XMLAdapter):\n    pass\n")
    (tmp_path / "elsewhere.py").write_text((tmp_path / "loud.py").read_text())
    ids = []
    for adapter in ("xml", "dspy.XMLAdapter", f"{tmp_path / 'loud.py'}:Loud"):
        run = own_run(PLAIN, "Plain", {"*": reply}, adapter=adapter)
        assert {said.answer for said in said_in(run)} == {3}
        ids.append(run.id[-12:])
    assert len(set(ids)) == 2


@pytest.mark.parametrize(
    ("adapter", "says"),
    [
        ("dspy.Module", "is no dspy.Adapter: use chat, json, xml, or ./file.py:Name"),
        ("dspy.YAMLAdapter", "dspy has no 'YAMLAdapter'"),
        ("yaml", "is none of chat, json, xml"),
    ],
)
def test_what_is_no_adapter_is_refused_before_anything_is_asked(own_run, adapter, says) -> None:
    with pytest.raises(SpecError, match=says):
        own_run(PLAIN, "Plain", {"*": "x"}, adapter=adapter)


def test_a_module_looks_up_what_it_likes(own_run, tmp_path) -> None:
    source = """
class Looks(dspy.Module):
    def forward(self, question, passages: list):
        found = dspy.Retrieve(k=1)("insulin lowers glucose").passages
        assert isinstance(passages, list) and len(found) == 1
        return dspy.Prediction(answer=1, rationale=found[0])
"""
    texts = ["Insulin lowers glucose in blood.", "The femur is the longest bone.", "Bile is stored."]
    lines = [json.dumps({"id": str(number), "title": "", "content": text}) for number, text in enumerate(texts)]
    (tmp_path / "corpus.jsonl").write_text("\n".join(lines) + "\n")
    retriever = {"kind": "bm25", "corpus": str(tmp_path / "corpus.jsonl")}
    for said in said_in(own_run(source, "Looks", {"*": "x"}, retriever=retriever)):
        assert (said.failure, said.answer, said.passages is not None) == (None, 1, True)
        assert "Insulin lowers glucose" in said.rationale


def test_the_example_that_decides_what_to_look_up_answers_from_real_passages(ask) -> None:
    wanted = load_corpus(CORPUS).passages[7]

    def reply(turn: str) -> str:
        if "next_tool_name" not in turn:
            said = "It is said there." if wanted.content in turn else "No."
            return f"[[ ## reasoning ## ]]\n{said}\n\n[[ ## answer ## ]]\n2\n\n[[ ## completed ## ]]"
        found = wanted.content in turn
        args = json.dumps({} if found else {"query": wanted.text[:200]})
        fields = {"next_thought": "So.", "next_tool_name": "finish" if found else "search", "next_tool_args": args}
        return "\n\n".join(f"[[ ## {name} ## ]]\n{text}" for name, text in fields.items())

    program = {"kind": f"{ROOT / 'examples' / 'look_up.py'}:LookUp", "args": {"steps": 4}}
    asked = ask({**program, "retriever": {"kind": "bm25", "corpus": str(CORPUS)}}, reply)
    assert (asked.said.answer, asked.said.rationale) == (2, "It is said there.")
    # It searches, finds, finishes and answers.
    assert len(asked.dialogues) == len(asked.said.calls) == 3


MEDIA = """
import base64

PNG = "data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAA="


class Reader(dspy.Module):
    def __init__(self):
        super().__init__()
        inputs = "before: str, picture: dspy.Image, between: str, file: dspy.File, question"
        self.ask = dspy.Predict(f"{inputs} -> answer: int")

    def forward(self, question: str):
        file = dspy.File.from_bytes(b"%PDF-1.4", filename="a.pdf", mime_type="application/pdf")
        return self.ask(before="B", picture=dspy.Image(PNG), between="M", file=file, question=question)
"""


def test_pictures_and_files_stand_where_they_stand(own_run, served) -> None:
    with serving(ToolWire()) as wire:
        run = own_run(MEDIA, "Reader", {"*": "x"}, limit=2, model=served(wire))
        turn = next(body["messages"][-1] for body in wire.bodies("/v1/chat/completions") if "picture ##" in str(body))
    kinds = [part["type"] for part in turn["content"]]
    assert kinds == ["text", "image_url", "text", "file", "text"]
    assert turn["content"][0]["text"].endswith("[[ ## picture ## ]]\n")
    assert turn["content"][2]["text"].endswith("[[ ## file ## ]]\n")
    assert turn["content"][3]["file"]["file_data"] == "data:application/pdf;base64,JVBERi0xLjQ="
    (said, *_) = said_in(run)
    assert len(said.calls[0].pictures) == 2


SEEKER = """
class Seeker(dspy.Module):
    def __init__(self):
        super().__init__()
        self.retrieve = dspy.Retrieve(k=2)
        self.agent = dspy.ReAct("question -> answer: int", tools=[self.look_up], max_iters=2)

    def look_up(self, query: str) -> str:
        "Look words up."
        return str(self.retrieve(query).passages)

    def forward(self, question: str):
        return self.agent(question=question)
"""


def test_a_module_that_looks_up_without_a_retriever_ends_the_run(own_run) -> None:
    fields = {"next_thought": "Look.", "next_tool_name": "look_up", "next_tool_args": '{"query": "x"}'}
    reply = "\n\n".join(f"[[ ## {name} ## ]]\n{value}" for name, value in fields.items())
    with pytest.raises(SpecError, match=r"looks up passages: set program\.retriever"):
        own_run(SEEKER, "Seeker", {"*": f"{reply}\n\n[[ ## completed ## ]]"})


def test_a_plan_says_that_a_module_may_ask_more_often_than_it_counts(own_spec, tmp_path) -> None:
    plan = medexam.plan(own_spec(PLAIN, "Plain", {"*": "x"}), runs_dir=tmp_path / "runs")
    assert "at least" in str(plan)
