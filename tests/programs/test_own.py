"""A module of the user's own as a program of a spec: what it is called with, what is kept, and what its faults cost."""

import asyncio
import json
from pathlib import Path

import pytest
import yaml

from medexam.cli.views.plan import print_plan
from medexam.errors import SpecError
from medexam.experiments import Runner, plan_document, plan_experiment, plan_resume
from medexam.predictions import Reason, Status
from medexam.programs import build_program
from medexam.programs.replay import replay
from medexam.serve import ScriptedEngine, ScriptedReply
from medexam.specs import build_cells
from watching import Silent

HEAD = "import dspy\n"
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
OURS = """
from medexam.programs import build_program
from medexam.specs import ZeroShotSpec

class Ours(dspy.Module):
    def __init__(self):
        super().__init__()
        self.ask = build_program(ZeroShotSpec(), "en")

    async def aforward(self, question):
        return await self.ask.acall(question=question)
"""
FIELD = "[[ ## argument ## ]]\nIt is so.\n\n[[ ## answer ## ]]\n2\n\n[[ ## completed ## ]]"


@pytest.fixture
def run(tmp_path):
    """`run(source, name, replies)` -> the stored run of a module over 200 sample questions at most."""

    def call(source, name, replies, *, limit=6, **program):
        (tmp_path / "mine.py").write_text(HEAD + source)
        (tmp_path / "replies.yaml").write_text(yaml.safe_dump(replies))
        document = {
            "name": "own",
            "dataset": {"name": "headqa_sample", "limit": limit},
            "model": {"engine": "scripted", "path": str(tmp_path / "replies.yaml")},
            "program": {"kind": f"{tmp_path / 'mine.py'}:{name}" if name[0].isupper() else name, **program},
        }
        (stored,), _ = Runner(plan_experiment(document, {}, runs_dir=tmp_path / "runs"), Silent()).run()
        return stored

    return call


def test_every_call_is_kept_in_order(run) -> None:
    stored = run(DEBATE, "Debate", {"*": FIELD}, args={"rounds": 3})
    predictions = stored.folder.read_predictions()
    assert stored.record.cell.program.label == "Debate-rounds_3"
    for said in predictions.values():
        assert (said.status, said.answer, len(said.generations)) == (Status.ANSWERED, 2, 4)
        assert said.prompt_tokens == sum(reply.prompt_tokens for reply in said.generations)
        assert said.completion_tokens == sum(reply.completion_tokens for reply in said.generations)
    lines = (stored.folder.path / "predictions.jsonl").read_text().splitlines()
    assert all(len(json.loads(line)["generations"]) == 4 for line in lines)


def test_a_module_that_asks_as_we_do_answers_as_we_do(run) -> None:
    replies = {
        "vaccine": "{Answer: 3}",
        "patient": "<Answer: 1>",
        "which": "I would say 2",
        "Which": "{Answer: 2}",
        "*": "{answer: 4}",
    }
    ours = run("", "zero_shot", replies, limit=200).folder.read_predictions()
    theirs = run(OURS, "Ours", replies, limit=200).folder.read_predictions()
    assert len(ours) == 120
    assert {key: (said.status, said.answer) for key, said in theirs.items()} == {
        key: (said.status, said.answer) for key, said in ours.items()
    }
    assert all(theirs[key].reply == said.reply for key, said in ours.items())


def test_a_reply_that_does_not_parse_leaves_its_question_unanswered(run) -> None:
    stored = run(DEBATE, "Debate", {"*": "I do not keep to formats."})
    assert {said.reason for said in stored.folder.read_predictions().values()} == {Reason.UNPARSED}
    assert stored.metrics.unanswered == 6


def test_an_exception_fails_its_question_and_no_other(run) -> None:
    source = """
class Fragile(dspy.Module):
    def forward(self, question):
        if question.options[0].text.startswith("A"):
            raise KeyError("a rule of mine")
        return 1
"""
    stored = run(source, "Fragile", {"*": "x"}, limit=60)
    predictions = stored.folder.read_predictions().values()
    failed = [said for said in predictions if said.status is Status.FAILED]
    assert 0 < len(failed) < 60
    told = "mine.py:6 in forward: KeyError: 'a rule of mine'"
    assert {(said.failure.kind, said.failure.message) for said in failed} == {("KeyError", told)}
    assert {said.answer for said in predictions if said.status is not Status.FAILED} == {1}


def test_a_fault_in_a_library_is_placed_where_the_users_code_called_it(run) -> None:
    source = """
import json

def read(reply):
    return json.loads(reply)

class Reads(dspy.Module):
    def forward(self, question: str):
        return read("sk-abcdefghijklmnopqrstuvwxyz is no JSON")

class Awaits(Reads):
    async def aforward(self, question: str):
        raise ValueError("sk-abcdefghijklmnopqrstuvwxyz")
"""
    stored = run(source, "Reads", {"*": "x"}, limit=1)
    (said,) = stored.folder.read_predictions().values()
    assert said.failure.message.startswith("mine.py:6 in read: JSONDecodeError: Expecting value")
    assert "json.loads(reply)" in said.failure.traceback
    assert said.failure.traceback.startswith("Traceback (most recent call last):\n")
    lines = (stored.folder.path / "predictions.jsonl").read_text()
    assert json.loads(lines)["failure"]["traceback"] == said.failure.traceback
    assert "[hidden]" in lines
    assert "sk-" not in lines
    (said,) = run(source, "Awaits", {"*": "x"}, limit=1).folder.read_predictions().values()
    assert said.failure.message == "mine.py:14 in aforward: ValueError: [hidden]"


def test_a_failure_without_a_traceback_is_written_as_before(run) -> None:
    stored = run(DEBATE, "Debate", {"*": {"error": "transport"}}, limit=1)
    line = json.loads((stored.folder.path / "predictions.jsonl").read_text())
    assert line["failure"].keys() == {"kind", "message"}


def test_a_signature_in_the_spec_needs_no_code(run) -> None:
    stored = run(
        "",
        "signature",
        {"*": "Because."},
        signature="question, options -> answer: int",
        module="chain_of_thought",
        answer_format="guided",
        instructions="Think, then answer.",
    )
    for said in stored.folder.read_predictions().values():
        assert said.status is Status.ANSWERED
        assert said.generations[0].text == "Because."
        assert said.rationale == "Because."


def test_the_digest_follows_the_source_and_not_its_place(tmp_path) -> None:
    def digest(folder, source, **program):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "mine.py").write_text(HEAD + source)
        program = {"kind": f"{tmp_path / folder / 'mine.py'}:Debate", **program}
        document = {"name": "x", "dataset": {"name": "headqa_sample", "limit": 2}, "program": program}
        return plan_experiment(document, {}, runs_dir=tmp_path / "runs").cells[0].spec_digest

    assert digest("a", DEBATE) == digest("b", DEBATE)
    assert digest("b", DEBATE + "#") != digest("a", DEBATE)
    assert digest("a", DEBATE, args={"rounds": 3}) != digest("a", DEBATE)


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
def test_what_is_no_program_is_said_before_anything_is_asked(tmp_path, source, says) -> None:
    (tmp_path / "mine.py").write_text(HEAD + source)
    _, (cell,) = build_cells({"name": "x", "program": {"kind": f"{tmp_path / 'mine.py'}:X"}}, {})
    with pytest.raises(SpecError, match=says):
        build_program(cell.program, "en")


def test_fields_come_as_their_types_say(tmp_path, question) -> None:
    source = """
class Typed(dspy.Module):
    def forward(self, question: str, stem, options: list[str], option_numbers, language, context="none"):
        self.seen = [question, stem, options, option_numbers, language, context]
        return dspy.Prediction(answer="C")
"""
    (tmp_path / "mine.py").write_text(HEAD + source)
    _, (cell,) = build_cells({"name": "x", "program": {"kind": f"{tmp_path / 'mine.py'}:Typed"}}, {})
    program = build_program(cell.program, "en")
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
def test_a_context_is_shown_once_whatever_fields_there_are(tmp_path, question, fields, shown) -> None:
    names = ", ".join(field.partition(":")[0] for field in fields.split(", "))
    source = f"""
class Seen(dspy.Module):
    def forward(self, {fields}):
        self.seen = [{names}]
        return dspy.Prediction(answer="C")
"""
    (tmp_path / "mine.py").write_text(HEAD + source)
    _, (cell,) = build_cells({"name": "x", "program": {"kind": f"{tmp_path / 'mine.py'}:Seen"}}, {})
    program = build_program(cell.program, "en")
    program(question=question.model_copy(update={"context": "A story."}))
    options = "\n".join(f"{option.number}. {option.text}" for option in question.options)
    assert program.module.seen == [text.format(stem=question.stem, options=options) for text in shown]


def test_a_prompt_can_be_shown_without_asking(question, tmp_path) -> None:
    (tmp_path / "mine.py").write_text(HEAD + DEBATE)
    _, (cell,) = build_cells({"name": "x", "program": {"kind": f"{tmp_path / 'mine.py'}:Debate"}}, {})
    prompts, said, _ = replay(build_program(cell.program, "en"), question, [FIELD, FIELD, FIELD])
    assert (len(prompts), said.answer) == (3, 2)
    assert question.stem in prompts[0][-1]["content"]
    (first,), nothing, _ = replay(build_program(cell.program, "en"), question, ())
    assert (first, nothing) == (prompts[0], None)


CATCHES = """
class Catches(dspy.Module):
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
FAILS = """
class Fails(dspy.Module):
    def forward(self, question):
        raise ValueError("a real\\nfault")
"""
ASKS_NOTHING = """
class AsksNothing(dspy.Module):
    def forward(self, question):
        return 1
"""


@pytest.fixture
def look(tmp_path, capfd, caplog):
    """`look(source, name)` -> the plan of a module as data, and all that was printed and logged."""

    def call(source, name):
        (tmp_path / "mine.py").write_text(HEAD + source)
        (tmp_path / "replies.yaml").write_text(yaml.safe_dump({"*": FIELD}))
        document = {
            "name": "own",
            "dataset": {"name": "headqa_sample", "limit": 2},
            "model": {"engine": "scripted", "path": str(tmp_path / "replies.yaml")},
            "program": {"kind": f"{tmp_path / 'mine.py'}:{name}"},
        }
        plan = plan_experiment(document, {}, runs_dir=tmp_path / "runs", only_look=True)
        (entry,) = plan_document(plan)
        printed = "".join(capfd.readouterr())
        print_plan(plan)
        return entry, printed + caplog.text, capfd.readouterr().out

    return call


def test_a_plan_shows_a_prompt_and_nothing_of_how_it_was_found(look) -> None:
    entry, printed, _ = look(CATCHES, "Catches")
    assert entry["warnings"] == []
    assert "options" in entry["prompt"][-1]["content"]
    assert printed == ""


def test_a_plan_says_what_a_module_raises_before_it_asks(look) -> None:
    entry, _, shown = look(FAILS, "Fails")
    said = "program Fails fails the first question before it asks: mine.py:5 in forward: ValueError: a real fault"
    assert (entry["prompt"], entry["warnings"]) == ([], [said])
    assert f"Warning: {said}" in " ".join(shown.split())


def test_a_plan_of_a_module_that_asks_nothing_has_no_prompt(look) -> None:
    entry, *_ = look(ASKS_NOTHING, "AsksNothing")
    assert (entry["prompt"], entry["warnings"]) == ([], [])


def test_votes_at_a_temperature_have_seeds_of_their_own(run, tmp_path) -> None:
    source = """
class Votes(dspy.Module):
    def __init__(self):
        super().__init__()
        self.ask = dspy.Predict("question -> answer: int", temperature=0.7, seed=11)

    def forward(self, question: str):
        return [self.ask(question=question) for _ in range(3)][-1]
"""
    seeds = []

    class Engine:
        def reply(self, dialogue):
            from medexam.serve import ScriptedEngine

            seeds.append(dialogue.sampling.seed)
            return ScriptedEngine({"*": FIELD}).answer(dialogue)

    import dspy

    from medexam.datasets import load_exam_set
    from medexam.programs import RecordingEngine
    from medexam.specs import DatasetSpec

    (tmp_path / "mine.py").write_text(HEAD + source)
    _, (cell,) = build_cells({"name": "x", "program": {"kind": f"{tmp_path / 'mine.py'}:Votes"}}, {})
    question = load_exam_set(DatasetSpec(limit=1)).questions[0]
    lm = dspy.LM("medexam/scripted", engine=RecordingEngine(Engine()), cache=False, num_retries=0)
    with dspy.context(lm=lm):
        build_program(cell.program, "en")(question=question)
    assert seeds == [11, 12, 13]


TRIES = """
def reward(asked, prediction):
    return prediction.answer / 10

class Tries(dspy.Module):
    def __init__(self, kind="BestOfN", n=4):
        super().__init__()
        ask = dspy.Predict("question, options -> answer: int")
        self.tries = getattr(dspy, kind)(ask, N=n, reward_fn=reward, threshold=0.3)

    def forward(self, stem, options):
        return self.tries(question=stem, options=options)
"""


def test_the_best_of_several_attempts_is_taken(run, monkeypatch) -> None:
    answer = ScriptedEngine.answer

    def answer_by_seed(engine, dialogue):
        said = [2, 1, 3, 4][dialogue.sampling.seed]
        monkeypatch.setitem(engine._replies, "*", ScriptedReply(text=f"[[ ## answer ## ]]\n{said}"))
        return answer(engine, dialogue)

    monkeypatch.setattr(ScriptedEngine, "answer", answer_by_seed)
    for said in run(TRIES, "Tries", {"*": "x"}).folder.read_predictions().values():
        assert said.answer == 3
        assert [reply.text[-1] for reply in said.generations] == ["2", "1", "3"]


def test_a_refined_attempt_is_asked_with_the_advice(run) -> None:
    advice = '[[ ## discussion ## ]]\nToo low.\n\n[[ ## advice ## ]]\n{"self": "take the third"}'
    replies = {"target_threshold": advice, "take the third": "[[ ## answer ## ]]\n3", "*": "[[ ## answer ## ]]\n2"}
    for said in run(TRIES, "Tries", replies, args={"kind": "Refine"}).folder.read_predictions().values():
        assert said.answer == 3
        assert len(said.generations) == 3


def test_attempts_that_no_server_answers_fail_their_question(run) -> None:
    stored = run(TRIES, "Tries", {"*": {"error": "transport"}}, limit=2, args={"n": 2})
    said = stored.folder.read_predictions().values()
    assert {one.failure and one.failure.kind for one in said} == {"LMTransportError"}


def test_a_file_beside_the_spec_is_found_from_anywhere(tmp_path, monkeypatch) -> None:
    from medexam.specs import load_document

    (tmp_path / "spec.yaml").write_text("name: x\nmatrix: {program: [longest, {kind: './mine.py:Debate'}]}\n")
    (tmp_path / "mine.py").write_text(HEAD + DEBATE)
    monkeypatch.chdir(Path("/"))
    _, (longest, own) = build_cells(load_document(tmp_path / "spec.yaml"), {})
    assert (longest.program.label, own.program.label) == ("longest", "Debate")
    assert own.program.kind == f"{tmp_path / 'mine.py'}:Debate"


def test_code_that_a_run_from_elsewhere_names_is_not_imported(run, tmp_path, monkeypatch) -> None:
    stored = run(DEBATE, "Debate", {"*": FIELD}, limit=2)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "of another installation"))
    with pytest.raises(
        SpecError, match=r"mine.py:Debate is not executed, because another installation made .*: read the code, the"
    ):
        plan_resume(str(stored.folder.path), runs_dir=tmp_path)


def test_a_module_looks_up_what_it_likes(run, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("MEDEXAM_CACHE", str(tmp_path / "cache"))
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
    stored = run(source, "Looks", {"*": "x"}, limit=3, retriever=retriever)
    for said in stored.folder.read_predictions().values():
        assert (said.failure, said.answer, said.passages is not None) == (None, 1, True)
        assert "Insulin lowers glucose" in said.rationale


OTHER = """
class Asks(dspy.Module):
    def __init__(self, way="context"):
        super().__init__()
        self.way = way
        self.ask = dspy.Predict("question, options -> answer: int")
        self.other = dspy.LM("openai/other", api_base="http://127.0.0.1:1", api_key="none", cache=False)
        if way == "predictor":
            self.ask.set_lm(self.other)

    def forward(self, stem, options):
        if self.way == "predictor":
            return self.ask(question=stem, options=options)
        if self.way == "alone":
            try:
                return int(self.other(stem)[0])
            except Exception:
                return 1
        if self.way == "parallel":
            with dspy.context(lm=self.other):
                asked = dspy.Example(question=stem, options=options).with_inputs("question", "options")
                return dspy.Parallel(num_threads=1, disable_progress_bar=True)([(self.ask, asked)])[0]
        with dspy.context(lm=self.other.copy(temperature=0.5)):
            return self.ask(question=stem, options=options)
"""


@pytest.mark.parametrize("way", ["context", "predictor", "alone", "parallel"])
def test_a_module_that_asks_another_model_fails_its_questions_before_that_is_asked(run, way: str) -> None:
    stored = run(OTHER, "Asks", {"*": FIELD}, limit=2, args={"way": way})
    assert [said.status for said in stored.folder.read_predictions().values()] == [Status.FAILED] * 2
    (failure,) = stored.failures
    assert failure.kind == "OtherModelError"
    assert "openai/other is not the run's model: ask dspy.settings.lm" in failure.example


OWN_MODEL = """
import medexam

class Waits(dspy.Module):
    def __init__(self, path):
        super().__init__()
        self.ask = dspy.Predict("question -> answer: int")
        self.ask.set_lm(medexam.lm("scripted", path=path))

    def forward(self, question):
        return self.ask(question=question)

class Awaits(Waits):
    async def aforward(self, question):
        return await self.ask.acall(question=question)
"""


@pytest.mark.parametrize("name", ["Waits", "Awaits"])
def test_a_model_of_medexams_that_a_module_brings_is_not_asked_either(run, tmp_path, name: str) -> None:
    stored = run(OWN_MODEL, name, {"*": FIELD}, limit=2, args={"path": str(tmp_path / "replies.yaml")})
    (failure,) = stored.failures
    assert (failure.kind, failure.questions) == ("OtherModelError", 2)


THREADS = """
import contextvars
from concurrent.futures import ThreadPoolExecutor

class Spreads(dspy.Module):
    def __init__(self, copied):
        super().__init__()
        self.copied = copied
        self.judge = dspy.Predict("question, options -> answer: int")

    def forward(self, stem, options):
        with ThreadPoolExecutor(2) as threads:
            ways = [contextvars.copy_context().run if self.copied else lambda call, **told: call(**told) for _ in "12"]
            asked = [threads.submit(way, self.judge, question=stem, options=options) for way in ways]
            return [one.result() for one in asked][0]
"""


def test_a_thread_of_the_modules_own_asks_the_runs_model_or_is_named(run) -> None:
    works = run(THREADS, "Spreads", {"*": FIELD}, limit=2, args={"copied": True})
    said = list(works.folder.read_predictions().values())
    assert [one.answer for one in said] == [2, 2]
    assert [len(one.generations or ()) for one in said] == [2, 2]
    (failure,) = run(THREADS, "Spreads", {"*": FIELD}, limit=2, args={"copied": False}).failures
    assert "asks in a thread of its own" in failure.example
    assert "dspy.Parallel" in failure.example
