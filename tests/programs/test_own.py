"""A module of the user's own as a program of a spec: what it is called with, what is kept, and what its faults cost."""

import asyncio
import json
from pathlib import Path

import pytest
import yaml

import medexam
from medexam.errors import SpecError
from medexam.predictions import Reason, Status
from medexam.specs import build_cells, load_document

DEBATE = """
class Debate(dspy.Module):
    def __init__(self, rounds=2):
        super().__init__()
        self.rounds = rounds
        self.argue = dspy.Predict("question, options -> argument")
        self.judge = dspy.Predict("question, options, arguments -> answer: int")

    def forward(self, stem, options):
        said = [self.argue(question=stem, options=options).argument for _ in range(self.rounds)]
        return self.judge(question=stem, options=options, arguments=" ".join(said))
"""
FIELD = "[[ ## argument ## ]]\nIt is so.\n\n[[ ## answer ## ]]\n2\n\n[[ ## completed ## ]]"


@pytest.fixture
def module(tmp_path):
    """`module(source, name)` -> the program of a module, to be called."""

    def build(source, name="X"):
        (tmp_path / "mine.py").write_text(f"import dspy\n{source}")
        return medexam.build_program({"kind": f"{tmp_path / 'mine.py'}:{name}"})

    return build


def said_in(run):
    return list(run.predictions.values())


def lines_of(run):
    return (run.folder / "predictions.jsonl").read_text()


def test_every_call_is_kept_in_order(own_run) -> None:
    run = own_run(DEBATE, "Debate", {"*": FIELD}, args={"rounds": 3})
    assert run.program == "Debate-rounds_3"
    for said in said_in(run):
        assert (said.status, said.answer, len(said.calls)) == (Status.ANSWERED, 2, 4)
        assert said.prompt_tokens == sum(reply.prompt_tokens for reply in said.calls)
        assert said.completion_tokens == sum(reply.completion_tokens for reply in said.calls)
    assert all(len(json.loads(line)["calls"]) == 4 for line in lines_of(run).splitlines())


def test_a_module_that_asks_as_we_do_answers_as_we_do(own_run) -> None:
    source = """
import medexam

class Ours(dspy.Module):
    def __init__(self):
        super().__init__()
        self.ask = medexam.build_program("zero_shot")

    async def aforward(self, question):
        return await self.ask.acall(question=question)
"""
    replies = {"vaccine": "{Answer: 3}", "patient": "<Answer: 1>", "which": "I would say 2", "*": "{answer: 4}"}
    ours = own_run("", "zero_shot", replies, limit=200).predictions
    theirs = own_run(source, "Ours", replies, limit=200).predictions
    assert len(ours) == 120
    assert {key: (said.status, said.answer, said.reply) for key, said in theirs.items()} == {
        key: (said.status, said.answer, said.reply) for key, said in ours.items()
    }


def test_a_reply_that_does_not_parse_leaves_its_question_unanswered(own_run) -> None:
    run = own_run(DEBATE, "Debate", {"*": "I do not keep to formats."})
    assert {said.reason for said in said_in(run)} == {Reason.UNPARSED}
    assert run.metrics.unanswered == 3


def test_an_exception_fails_its_question_and_no_other(own_run) -> None:
    source = """
class Fragile(dspy.Module):
    def forward(self, question):
        if question.options[0].text.startswith("A"):
            raise KeyError("a rule of mine")
        return 1
"""
    said = said_in(own_run(source, "Fragile", {"*": "x"}, limit=60))
    failed = [one for one in said if one.status is Status.FAILED]
    assert 0 < len(failed) < 60
    told = "mine.py:6 in forward: KeyError: 'a rule of mine'"
    assert {(one.failure.kind, one.failure.message) for one in failed} == {("KeyError", told)}
    assert {one.answer for one in said if one.status is not Status.FAILED} == {1}


def test_a_fault_is_placed_where_the_users_code_called_it_and_tells_no_key(own_run) -> None:
    source = """
import json

def read(reply):
    return json.loads(reply)

class Reads(dspy.Module):
    def forward(self, question: str):
        return read("sk-abcdefghijklmnopqrstuvwxyz is no JSON")

class Awaits(dspy.Module):
    async def aforward(self, question: str):
        raise ValueError("sk-abcdefghijklmnopqrstuvwxyz")
"""
    run = own_run(source, "Reads", {"*": "x"}, limit=1)
    (said,) = said_in(run)
    assert said.failure.message.startswith("mine.py:6 in read: JSONDecodeError: Expecting value")
    assert "json.loads(reply)" in said.failure.traceback
    assert "[hidden]" in lines_of(run)
    assert "sk-" not in lines_of(run)
    (said,) = said_in(own_run(source, "Awaits", {"*": "x"}, limit=1))
    assert said.failure.message == "mine.py:14 in aforward: ValueError: [hidden]"


def test_a_question_whose_time_is_over_fails(own_run) -> None:
    source = "import time\n\nclass Waits(dspy.Module):\n    def forward(self, question):\n        time.sleep(0.3)\n"
    (said,) = said_in(own_run(source, "Waits", {"*": "x"}, limit=1, timeout_s=0.05))
    assert said.failure.message == "no answer within 0.05 s (program.timeout_s)"


def test_the_digest_follows_the_source_and_not_its_place(own_spec, tmp_path) -> None:
    def run_id(source, folder="a", **program):
        spec = own_spec(source, "Debate", {"*": "x"}, **program)
        place = tmp_path / folder
        place.mkdir(exist_ok=True)
        (tmp_path / "mine.py").rename(place / "mine.py")
        spec["program"]["kind"] = f"{place / 'mine.py'}:Debate"
        return medexam.plan(spec, runs_dir=tmp_path / "runs").cells[0]["run_id"]

    first = run_id(DEBATE)
    assert run_id(DEBATE, "b", timeout_s=9) == first
    assert len({first, run_id(f"{DEBATE}#"), run_id(DEBATE, args={"rounds": 3})}) == 3


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("class X(dspy.Module):\n    def forward(self, foo): ...", "takes foo, which no question has: the fields are"),
        ("class X(dspy.Module):\n    def forward(self): ...", "takes nothing of a question"),
        ("class X(dspy.Module):\n    def forward(self, passages): ...", "takes passages: set program.retriever"),
        ("class X: ...", "is X, not a dspy.Module .*: name a class derived from dspy.Module, with a method"),
        ("class X(dspy.Module):\n    def predict(self, question): ...", "X has no forward: name a class derived"),
        ("def X(): raise ValueError('no')", "making it failed: ValueError: no"),
        ("X = 3", "is int, not a dspy.Module"),
    ],
)
def test_what_is_no_program_is_said_before_anything_is_asked(module, source, says) -> None:
    with pytest.raises(SpecError, match=says):
        module(source)


def test_fields_come_as_their_types_say(module, question) -> None:
    program = module("""
class X(dspy.Module):
    def forward(self, question: str, stem, options: list[str], option_numbers, language, context="none"):
        self.seen = [question, stem, options, option_numbers, language, context]
        return dspy.Prediction(answer="C")
""")
    assert program(question=question).answer == 3
    texts = [option.text for option in question.options]
    assert program.module.seen == [question.stem, question.stem, texts, [1, 2, 3, 4, 5], "en", ""]
    assert asyncio.run(program.acall(question=question)).answer == 3


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        ("question: str", ["A story.\n\n{stem}\n{options}"]),
        ("question: str, options: str", ["A story.\n\n{stem}", "{options}"]),
        ("question: str, context: str", ["{stem}\n{options}", "A story."]),
        ("stem, context", ["{stem}", "A story."]),
        ("stem, options", ["A story.\n\n{stem}", "{options}"]),
    ],
)
def test_a_context_is_shown_once_whatever_fields_there_are(module, question, fields, shown) -> None:
    names = ", ".join(field.partition(":")[0] for field in fields.split(", "))
    program = module(f"""
class X(dspy.Module):
    def forward(self, {fields}):
        self.seen = [{names}]
        return dspy.Prediction(answer="C")
""")
    program(question=question.model_copy(update={"context": "A story."}))
    options = "\n".join(f"{option.number}. {option.text}" for option in question.options)
    assert program.module.seen == [text.format(stem=question.stem, options=options) for text in shown]


FAILS = "class X(dspy.Module):\n    def forward(self, question):\n        raise ValueError('a real\\nfault')\n"
CATCHES = """
class X(dspy.Module):
    def __init__(self):
        super().__init__()
        self.ask = dspy.Predict("question, options -> answer: int")

    def forward(self, stem, options):
        asked = dspy.Example(question=stem, options=options).with_inputs("question", "options")
        try:
            return dspy.Parallel(num_threads=1, disable_progress_bar=True)([(self.ask, asked)])[0]
        except Exception:
            print("asking failed")
            raise ValueError("no answer")
"""


FAULT = "program X fails the first question before it asks: mine.py:4 in forward: ValueError: a real fault"
SILENT = "class X(dspy.Module):\n    def forward(self, question):\n        return 1\n"


@pytest.mark.parametrize(
    ("source", "shows", "warnings"), [(CATCHES, True, []), (FAILS, False, [FAULT]), (SILENT, False, [])]
)
def test_a_plan_shows_a_prompt_and_nothing_of_how_it_was_found(
    own_spec, tmp_path, capfd, caplog, source, shows, warnings
) -> None:
    (entry,) = medexam.plan(own_spec(source, "X", {"*": FIELD}), runs_dir=tmp_path / "runs").cells
    assert entry["warnings"] == warnings
    assert bool(entry["prompt"] and "options" in entry["prompt"][-1]["content"]) is shows
    assert "asking failed" not in "".join(capfd.readouterr()) + caplog.text


def test_votes_at_a_temperature_have_seeds_of_their_own(ask, module, tmp_path) -> None:
    module("""
class X(dspy.Module):
    def __init__(self):
        super().__init__()
        self.ask = dspy.Predict("question -> answer: int", temperature=0.7, seed=11)

    def forward(self, question: str):
        return [self.ask(question=question) for _ in range(3)][-1]
""")
    assert ask(f"{tmp_path / 'mine.py'}:X", FIELD).seeds == [11, 12, 13]


TRIES = """
def reward(asked, prediction):
    return prediction.answer / 10

class X(dspy.Module):
    def __init__(self):
        super().__init__()
        ask = dspy.Predict("question, options -> answer: int")
        self.tries = dspy.BestOfN(ask, N=4, reward_fn=reward, threshold=0.3)

    def forward(self, stem, options):
        return self.tries(question=stem, options=options)
"""


def test_the_best_of_several_attempts_is_taken(ask, module, tmp_path) -> None:
    module(TRIES)
    left = iter("2134")
    said = ask(f"{tmp_path / 'mine.py'}:X", lambda _: f"[[ ## answer ## ]]\n{next(left)}").said
    assert said.answer == 3
    assert [reply.text[-1] for reply in said.calls] == ["2", "1", "3"]


def test_a_file_beside_the_spec_is_found_from_anywhere(tmp_path, monkeypatch) -> None:
    (tmp_path / "spec.yaml").write_text("name: x\nmatrix: {program: [longest, {kind: './mine.py:Debate'}]}\n")
    (tmp_path / "mine.py").write_text(f"import dspy\n{DEBATE}")
    monkeypatch.chdir(Path("/"))
    _, (_, own) = build_cells(load_document(tmp_path / "spec.yaml"), {})
    assert (own.program.label, own.program.kind) == ("Debate", f"{tmp_path / 'mine.py'}:Debate")


OTHER = """
from dspy.utils import DummyLM

class Holds(dspy.Module):
    def __init__(self):
        super().__init__()
        self.ask = dspy.Predict("question, options -> answer: int")
        self.ask.set_lm(DummyLM([{"answer": "1"}]))

    def forward(self, stem, options):
        return self.ask(question=stem, options=options)

class Makes(dspy.Module):
    def __init__(self):
        super().__init__()
        self.ask = dspy.Predict("question, options -> answer: int")

    def forward(self, stem, options):
        with dspy.context(lm=DummyLM([{"answer": "1"}])):
            asked = dspy.Example(question=stem, options=options).with_inputs("question", "options")
            return dspy.Parallel(num_threads=1, disable_progress_bar=True)([(self.ask, asked)])[0]
"""


def test_a_module_that_asks_another_model_gives_no_answer(own_run) -> None:
    with pytest.raises(SpecError, match="dummy that it holds is not the run's model"):
        own_run(OTHER, "Holds", {"*": FIELD}, limit=2)
    said = said_in(own_run(OTHER, "Makes", {"*": FIELD}, limit=2))
    assert [(one.status, one.failure.kind) for one in said] == [(Status.FAILED, "OtherModelError")] * 2
    assert "dummy is not the run's model: ask dspy.settings.lm" in said[0].failure.message


THREADS = """
import contextvars
from concurrent.futures import ThreadPoolExecutor

class Spreads(dspy.Module):
    def __init__(self):
        super().__init__()
        self.judge = dspy.Predict("question, options -> answer: int")

    def forward(self, stem, options):
        with ThreadPoolExecutor(2) as threads:
            ways = [contextvars.copy_context().run for _ in "12"]
            asked = [threads.submit(way, self.judge, question=stem, options=options) for way in ways]
            return [one.result() for one in asked][0]
"""


def test_a_thread_of_the_modules_own_asks_the_runs_model(own_run) -> None:
    works = said_in(own_run(THREADS, "Spreads", {"*": FIELD}, limit=2))
    assert [(one.answer, len(one.calls)) for one in works] == [(2, 2), (2, 2)]


def test_other_outputs_are_kept_and_metrics_read_them(own_run, tmp_path) -> None:
    source = """
from pydantic import BaseModel

class Source(BaseModel):
    title: str
    year: int

class Sure(dspy.Module):
    def forward(self, question: str):
        more = {"confidence": 0.75, "keywords": ["a", "b"], "source": Source(title="t", year=1999)}
        return dspy.Prediction(answer=2, reasoning="so", nan=float("nan"), **more)

def confidence(question, gold, prediction):
    return prediction.outputs["confidence"]
"""
    run = own_run(source, "Sure", {"*": "x"}, parts={"metrics": [f"{tmp_path / 'mine.py'}:confidence"]})
    kept = {"confidence": 0.75, "keywords": ["a", "b"], "source": {"title": "t", "year": 1999}, "nan": None}
    assert [json.loads(line)["outputs"] for line in lines_of(run).splitlines()] == [kept] * 3
    assert [said.outputs for said in said_in(run)] == [kept] * 3
    assert run.metrics.own["confidence"].value == 0.75


BLOCKS = """
class Blocks(dspy.Module):
    def __init__(self):
        super().__init__()
        self.ask = dspy.Predict("question -> answer: int")

    def forward(self, question):
        return self.ask(question=question.stem)

class Awaits(Blocks):
    async def aforward(self, question):
        return self.forward(question)

class Raises(Blocks):
    def forward(self, question):
        super().forward(question)
        raise KeyError("mine")
"""


def test_a_guided_answer_survives_another_output_that_does_not_parse(own_run) -> None:
    fields = {"signature": "question -> answer: int, years: list[int], sure: bool", "answer_format": "guided"}
    for said in said_in(own_run("", "signature", {"*": FIELD}, **fields)):
        assert (said.status, said.outputs) == (Status.ANSWERED, {"years": None, "sure": True})


@pytest.mark.parametrize(
    ("name", "ends"), [("Blocks", "status: answered"), ("Awaits", "answer: 2"), ("Raises", "KeyError: 'mine'")]
)
def test_one_question_is_asked_with_everything_printed_and_nothing_kept(
    own_spec, tmp_path, request, name, ends
) -> None:
    spec = own_spec(BLOCKS, name, {"*": FIELD})
    (tmp_path / "spec.yaml").write_text(yaml.safe_dump(spec))
    _, printed, _ = request.getfixturevalue("medexam")("run", "spec.yaml", "--debug")
    for words in ("Call", "system:", "[[ ## question ## ]]", '"temperature": 0.0', "reply:", ends):
        assert words in printed
    assert "Call 2" not in printed
    assert not list((tmp_path / "runs").rglob("predictions.jsonl"))
