"""Programs that a spec composes of steps: what is asked, what is kept, and what is refused before."""

import asyncio
from pathlib import Path

import pytest
import yaml

from asked import requests_of
from medexam.dspy_requests import digest_request
from medexam.errors import ProgramFaultError, SpecError
from medexam.experiments import Runner, Spending, build_lm, plan_document, plan_experiment, plan_resume, plan_retrieval
from medexam.experiments.plan.conversations import conversation
from medexam.experiments.plan.text_search import TextSearch
from medexam.predictions import Reason, Status
from medexam.programs import AskingProgram, ProgramContext, build_prediction, build_program, read_again
from medexam.retrievers import plan_retriever
from medexam.serve import ScriptedEngine
from medexam.signatures.direct import in_bulk
from medexam.specs import ModelSpec, build_cells
from medexam.specs.programs.shipped_flows import flow_of
from watching import Silent

FIELDS = """[[ ## argument ## ]]
It is so.

[[ ## helps ## ]]
True

[[ ## supported ## ]]
False

[[ ## reasoning ## ]]
Because.

[[ ## answer ## ]]
2

[[ ## completed ## ]]
{Answer: 3}"""
WEIGHED = {"text": FIELDS, "logprobs": [[-3.0], [-2.0], [-1.0], [-4.0], [-5.0]]}
"""The same, with the log-probability of each of five texts."""


@pytest.fixture
def document(tmp_path: Path):
    """`document(steps, replies)` -> the spec of a flow over six sample questions."""

    def make(steps, replies=FIELDS, **parts):
        (tmp_path / "replies.yaml").write_text(yaml.safe_dump({"*": replies}))
        return {
            "name": "flows",
            "dataset": {"name": "headqa_sample", "limit": 6},
            "model": {"engine": "scripted", "path": str(tmp_path / "replies.yaml"), **parts.pop("model", {})},
            "program": {"steps": steps, **parts.pop("program", {})},
            **parts,
        }

    return make


@pytest.fixture
def run(document, tmp_path: Path):
    """`run(steps, replies)` -> the stored run of a flow."""

    def call(steps, replies=FIELDS, **parts):
        plan = plan_experiment(document(steps, replies, **parts), {}, runs_dir=tmp_path / "runs")
        (stored,), _ = Runner(plan, Silent()).run()
        return stored

    return call


DEBATE = [
    {"repeat": 2, "do": [{"ask": "question, options, arguments -> argument", "add": "arguments"}]},
    {"ask": "question, options, arguments -> answer: int", "answer_format": "guided"},
]


def test_a_flow_goes_the_whole_way(document, tmp_path: Path) -> None:
    """Planned, run, resumed and reported as every other program is."""
    plan = plan_experiment(document(DEBATE), {}, runs_dir=tmp_path / "runs")
    (cell,) = plan.cells
    assert cell.calls == 6 * 3
    assert list(dict(cell.program.named_predictors())) == ["arguments", "answer"]
    assert "options" in str(plan_document(plan))
    (stored,), _ = Runner(plan, Silent()).run()
    predictions = stored.folder.read_predictions()
    assert {(said.status, len(said.generations)) for said in predictions.values()} == {(Status.ANSWERED, 3)}
    lines = (stored.folder.path / "predictions.jsonl").read_text().splitlines()
    (stored.folder.path / "predictions.jsonl").write_text("\n".join(lines[:2]) + "\n")
    (resumed,), _ = Runner(plan_resume(str(stored.folder.path), runs_dir=tmp_path / "runs"), Silent()).run()
    again = resumed.folder.read_predictions()
    assert {key: (said.answer, said.generations) for key, said in again.items()} == {
        key: (said.answer, said.generations) for key, said in predictions.items()
    }
    assert "accuracy" in (resumed.folder.path / "report.md").read_text().lower()


CORPUS = Path(__file__).parents[1] / "retrievers" / "corpus_sample" / "passages.jsonl.gz"
BM25 = {"kind": "bm25", "corpus": str(CORPUS)}
SCRIPTED = ModelSpec(engine="scripted", path=Path("none"), temperature=0.7, seed=5)


def spec_of(program, **parts):
    (cell,) = build_cells({"name": "x", "dataset": {"name": "headqa_sample"}, "program": program, **parts}, {})[1]
    return cell.program


def ask(program, question, replies, tmp_path=None, *, model=SCRIPTED, change=lambda spec: spec):
    """The prediction of a program that is asked as in a run, and the requests."""
    spec = change(spec_of(program, model={"temperature": 0.7, "engine": "scripted", "path": "none"}))
    engine = ScriptedEngine(replies)
    context = ProgramContext()
    if (settings := spec.retrieval) is not None:
        retrieval = plan_retrieval(settings, plan_retriever(settings.retriever), tmp_path, "en")
        retrieval.fill([question])
        context = ProgramContext(finder=retrieval, search=TextSearch(retrieval))
    made = build_program(spec, "en", context)

    async def answer():
        with in_bulk(build_lm(model, engine)):
            return await made.acall(question=question)

    said = asyncio.run(answer())
    prediction = build_prediction(question, said, program="p", spec_digest="d", latency_s=0.1)
    return prediction, requests_of(engine), made


@pytest.mark.parametrize(
    "program",
    [
        {"kind": "zero_shot"},
        {"kind": "zero_shot", "answer_format": "guided", "samples": 3},
        {"kind": "few_shot", "orders": "cyclic"},
        {"kind": "chain_of_thought"},
        {"kind": "chain_of_thought", "answer_format": "guided", "samples": 2, "orders": "reversed"},
        {"kind": "likelihood", "read": "label"},
        {"kind": "likelihood", "read": "label", "orders": "cyclic"},
        {"kind": "retrieve_then_answer", "retriever": BM25, "k": 3},
        {"kind": "retrieve_then_answer", "retriever": BM25, "samples": 2, "orders": "reversed", "then": "few_shot"},
        {"kind": "retrieve_then_answer", "retriever": BM25, "query": "per_option", "answer_format": "guided"},
        {"kind": "likelihood", "read": "label", "context": "retrieved", "retriever": BM25},
        {"kind": "signature", "signature": "question, options -> answer: int", "answer_format": "guided"},
        {"kind": "signature", "signature": "question, options, passages -> answer: int", "retriever": BM25},
    ],
    ids=lambda program: "-".join(map(str, (v for v in program.values() if not isinstance(v, dict)))),
)
def test_the_steps_of_a_kind_ask_and_answer_as_it_does(program, question, tmp_path) -> None:
    """Byte for byte, done one by one: the same requests, the same prediction, read again alike."""
    alone, requests, made = ask(program, question, {"*": WEIGHED}, tmp_path)
    said, step_requests, flow = ask(program, question, {"*": WEIGHED}, tmp_path, change=flow_of)
    assert step_requests == requests
    assert said == alone
    assert flow.calls_for(question) == made.calls_for(question)
    assert read_again(flow, question, said) == read_again(made, question, alone)


def test_modifiers_of_a_step_are_those_of_the_kind(question, tmp_path) -> None:
    step = {"use": "chain_of_thought", "samples": 2, "orders": "reversed", "answer_format": "guided", "max_tokens": 9}
    alone = {"kind": step["use"], **{name: value for name, value in step.items() if name != "use"}}
    assert ask({"steps": [step]}, question, {"*": FIELDS})[:2] == ask(alone, question, {"*": FIELDS})[:2]


def test_samples_and_orders_of_a_signature_vote(question) -> None:
    step = {"ask": "question, options -> answer: int", "samples": 3, "orders": "reversed", "answer_format": "guided"}
    prediction, requests, made = ask({"steps": [step]}, question, {"*": "2"})
    assert [request.config.seed for request in requests] == [5, 6, 7] * 2
    # The second place is option 2 of the exam's order, and option 4 of its reverse.
    assert (prediction.votes, prediction.answer) == ((2, 2, 2, 4, 4, 4), 2)
    assert len(prediction.generations) == made.calls_for(question) == 6


def test_each_guided_output_is_a_call(question) -> None:
    step = {"ask": "question, options -> note, right: bool, answer: int", "by": "chain_of_thought"}
    step["answer_format"] = "guided"
    _, requests, made = ask({"steps": [step]}, question, {"*": "2"})
    assert len(requests) == made.calls_for(question) == 4


def test_equal_steps_draw_anew(question) -> None:
    """A server gives one seed and one prompt one reply: no two samples are one."""
    signature = {"ask": "question, options -> answer: int", "answer_format": "guided"}
    for step in ({"use": "zero_shot"}, signature, {"use": {"kind": "zero_shot", "samples": 2}}):
        _, requests, _ = ask({"steps": [{"all": [step, step], "combine": "vote"}]}, question, {"*": "2"})
        seeds = [request.config.seed for request in requests]
        assert seeds == list(range(5, 5 + len(seeds)))
    _, requests, _ = ask({"steps": [{"repeat": 3, "do": [{"use": "zero_shot"}]}]}, question, {"*": "{Answer: 1}"})
    assert [request.config.seed for request in requests] == [5, 6, 7]


RAG = [
    {"retrieve": "question", "k": 4},
    {"each": "passages", "name": "passage", "keep": "helps", "do": [{"ask": "question, passage -> helps: bool"}]},
    {"ask": "question, options, passages -> answer: int", "by": "chain_of_thought"},
    {"ask": "question, passages, answer -> supported: bool"},
    {"unless": "supported", "do": [{"use": "zero_shot"}]},
]


def test_passages_are_judged_shown_and_kept(question, tmp_path) -> None:
    asked = []

    def reply(turn: str) -> str:
        asked.append(turn)
        helps = len(asked) in (2, 3)
        return FIELDS.replace("helps ## ]]\nTrue", f"helps ## ]]\n{helps}")

    prediction, requests, made = ask({"steps": RAG, "retriever": BM25}, question, reply, tmp_path)
    assert len(requests) == len(prediction.generations) == made.calls_for(question) == 4 + 1 + 1 + 1
    assert (prediction.answer, len(prediction.passages)) == (3, 4)
    texts = [turn.partition("[[ ## passage ## ]]")[2].partition("Respond")[0].strip() for turn in asked[:4]]
    assert f"[[ ## passages ## ]]\n{texts[1]}\n\n{texts[2]}\n" in asked[4]
    assert texts[0] not in asked[4]
    assert "[[ ## answer ## ]]\n2\n" in asked[5]


def test_a_condition_that_holds_leaves_the_rest_out(question, tmp_path) -> None:
    prediction, requests, _ = ask(
        {"steps": RAG, "retriever": BM25}, question, {"*": FIELDS.replace("False", "True")}, tmp_path
    )
    assert (prediction.answer, prediction.rationale, len(requests)) == (2, "Because.", 6)


MEDRAG = [
    {
        "repeat": 2,
        "until": "enough",
        "do": [
            {"ask": "question, options, notes -> queries: list[str], enough: bool"},
            {
                "each": "queries",
                "name": "query",
                "most": 2,
                "do": [{"retrieve": "query"}, {"ask": "query, passages -> note", "add": "notes"}],
            },
        ],
    },
    {"use": "chain_of_thought"},
]


def test_queries_that_a_model_writes_are_looked_up(question, tmp_path) -> None:
    replies = {
        "queries": '[[ ## queries ## ]]\n["insulin", "dopamine", "bone"]\n\n[[ ## enough ## ]]\nFalse\n\n',
        "note": "[[ ## note ## ]]\nA note.\n\n[[ ## completed ## ]]",
        "*": "{Answer: 1}",
    }
    prediction, requests, made = ask({"steps": MEDRAG, "retriever": BM25}, question, replies, tmp_path)
    assert len(requests) == made.calls_for(question) == 2 * (1 + 2) + 1
    assert prediction.answer == 1
    assert "A note.\n\nA note." in requests[3].messages[-1].text


@pytest.mark.parametrize("rule", ["vote", "mean_probability"])
def test_branches_are_combined(rule, question) -> None:
    branches = [
        {"use": {"kind": "likelihood", "read": "label"}},
        {"use": "longest"},
        [{"ask": "question -> argument"}, {"use": {"kind": "blind", "option": 3}}],
    ]
    prediction, *_ = ask({"steps": [{"all": branches, "combine": rule}]}, question, {"*": WEIGHED})
    assert prediction.votes[1:] == (5, 3)
    assert sum(prediction.option_probabilities.values()) == pytest.approx(1)


def test_branches_see_what_was_there_before_them(question) -> None:
    speak = {"ask": "question, options, arguments -> argument", "add": "arguments"}
    _, requests, _ = ask(
        {"steps": [speak, {"all": [speak, speak]}, speak, {"use": "longest"}]}, question, {"*": FIELDS}
    )
    assert [request.messages[-1].text.count("It is so.") for request in requests] == [0, 1, 1, 3]


def test_used_programs_look_up_in_one_way_behind_a_retriever(question, tmp_path) -> None:
    used = [{"use": {"kind": "retrieve_verify", "k": 2, "retriever": BM25}}]
    used.append({"use": {"kind": "retrieve_then_answer", "cite": True, "retriever": BM25}})
    steps = [{"all": used, "combine": "vote"}]
    prediction, requests, made = ask({"steps": steps, "retriever": BM25}, question, {"*": FIELDS}, tmp_path)
    assert (prediction.votes, len(prediction.passages)) == ((3, 3), 2)
    assert len(requests) <= made.calls_for(question) == 5


def test_own_code_combines_and_answers_anywhere(question, tmp_path) -> None:
    (tmp_path / "mine.py").write_text(
        """
import dspy

def last(question, outcomes):
    return outcomes[-1].answer

class Judge(dspy.Module):
    def __init__(self):
        super().__init__()
        self.judge = dspy.Predict("stem, argument -> answer: int")

    def forward(self, stem, argument):
        return self.judge(stem=stem, argument=argument.upper())
"""
    )
    name = str(tmp_path / "mine.py")
    steps = [
        {"ask": "question -> argument"},
        {"all": [{"use": f"{name}:Judge"}, {"use": "longest"}], "combine": f"{name}:last"},
    ]
    prediction, requests, made = ask({"steps": steps}, question, {"*": FIELDS})
    assert (prediction.answer, prediction.votes) == (5, (2, 5))
    assert "IT IS SO." in requests[1].messages[-1].text
    assert list(dict(made.named_predictors())) == ["argument", "Judge.judge"]
    assert made.spec.codes == (f"{name}:Judge", f"{name}:last")


def test_a_reply_that_does_not_parse_leaves_its_fields_empty(question) -> None:
    steps = [{"ask": "question -> argument"}, {"ask": "question, argument -> answer: int"}]
    prediction, requests, _ = ask({"steps": steps}, question, {"*": "nothing"})
    assert (prediction.status, prediction.reason, len(requests)) == (Status.UNANSWERED, Reason.UNPARSED, 1)
    fallback = [{"ask": "question, options -> answer: int"}, {"unless": "answer", "do": [{"use": "longest"}]}]
    assert ask({"steps": fallback}, question, {"*": "nothing"})[0].answer == 5


@pytest.mark.parametrize("by", ["predict", "chain_of_thought", "likelihood"])
def test_by_says_how_a_signature_is_asked(by, question) -> None:
    step = {"ask": "question, options -> answer: int", "by": by, "instructions": {"en": "Look closely."}}
    prediction, requests, made = ask({"steps": [step]}, question, {"*": WEIGHED})
    assert len(requests) == made.calls_for(question)
    assert prediction.status is Status.ANSWERED
    assert "Look closely." in str(requests[0])
    assert (prediction.option_scores is not None) == (by == "likelihood")
    assert list(dict(made.named_predictors())) == [
        {"predict": "answer", "chain_of_thought": "answer.predict", "likelihood": "answer.weigh"}[by]
    ]


def test_demonstrations_and_temperature_are_a_step_s_own(question, tmp_path) -> None:
    (tmp_path / "judge.txt").write_text("Be strict.\n")
    demos = [{"question": "One?", "options": "1. A", "answer": 1}]
    step = {
        "ask": "question, options -> answer: int",
        "demos": demos,
        "temperature": 0,
        "instructions": str(tmp_path / "judge.txt"),
    }
    _, (request,), _ = ask({"steps": [step]}, question, {"*": FIELDS})
    assert request.config.temperature == 0
    assert "One?" in str(request.messages)
    assert "Be strict." in str(request)


def digest_of(document, tmp_path):
    (cell,) = plan_experiment(document, {}, runs_dir=tmp_path / "runs").cells
    return cell.spec_digest


def test_the_digest_covers_steps_and_what_their_files_hold(document, tmp_path) -> None:
    (tmp_path / "mine.py").write_text("import dspy\ndef f(q, o):\n    return 1\n")
    (tmp_path / "judge.txt").write_text("Be strict.")
    step = {"ask": "question, options -> answer: int", "instructions": str(tmp_path / "judge.txt")}
    steps = [{"all": [step, {"use": "zero_shot"}], "combine": f"{tmp_path / 'mine.py'}:f"}]
    digests = [digest_of(document(steps), tmp_path), digest_of(document(steps, program={"name": "other"}), tmp_path)]
    assert len(set(digests)) == 1
    (tmp_path / "judge.txt").write_text("Be kind.")
    digests.append(digest_of(document(steps), tmp_path))
    (tmp_path / "mine.py").write_text("import dspy\ndef f(q, o):\n    return 2\n")
    digests.append(digest_of(document(steps), tmp_path))
    step["temperature"] = 0.5
    digests.append(digest_of(document(steps), tmp_path))
    digests.append(digest_of(document(steps, model={"seed": 9}), tmp_path))
    step["max_tokens"] = 7
    digests.append(digest_of(document(steps), tmp_path))
    steps[0]["all"][1]["orders"] = "cyclic"
    digests.append(digest_of(document(steps), tmp_path))
    assert len(set(digests)) == 7


@pytest.mark.parametrize(
    ("steps", "place", "way_out"),
    [
        ([{"ask": "question, passage -> answer: int"}], "program.steps.0.ask: ", "the fields here are question"),
        ([{"ask": "question, passages -> answer: int"}], "program.steps.0.ask: ", "put `retrieve` before it"),
        ([{"ask": "question -> text"}], "program.steps: ", "end with a step that always writes `answer`"),
        ([{"ask": "question"}], "program.steps.0.ask: ", "is not a signature, such as"),
        ([{"aks": "question"}], "program.steps.0: ", "a step is one of ask, use, retrieve"),
        ([{"use": "zero_shot", "smaples": 3}], "'program.steps.0.smaples'", "did you mean 'samples'?"),
        ([{"use": "zero_sho"}], "program.steps.0.use.kind: ", "did you mean 'zero_shot'?"),
        ([{"use": "likelihood", "answer_form": "braces"}], "program.steps.0: ", "takes no answer_form"),
        (
            [{"use": "zero_shot"}, {"when": "answr", "do": [{"use": "longest"}]}],
            "program.steps.1.when: ",
            "did you mean answer?",
        ),
        (
            [{"ask": "question -> answer: int, note"}, {"when": "note", "do": [{"use": "longest"}]}],
            "program.steps.1.when: ",
            "write it as note: bool",
        ),
        (
            [{"all": [{"ask": "question -> a"}, {"ask": "question -> a"}]}, {"use": "longest"}],
            "program.steps.0.all.1: ",
            "with `as`",
        ),
        (
            [{"all": [{"ask": "question -> a"}, {"use": "longest"}], "combine": "vote"}],
            "program.steps.0.all.0: ",
            "write `answer`",
        ),
        (
            [{"all": [{"use": "random"}, {"use": "longest"}], "combine": "stacked"}],
            "program.steps.0.combine: ",
            "go together",
        ),
        (
            [{"ask": "question -> q: list[str]"}, {"each": "q", "do": [{"ask": "entry -> x"}]}, {"use": "longest"}],
            "program.steps.1.each: ",
            "add `most`",
        ),
        (
            [{"each": "question", "do": [{"ask": "entry -> x"}]}, {"use": "longest"}],
            "program.steps.0.each: ",
            "list[str]",
        ),
        ([{"ask": "question -> n", "samples": 3}, {"use": "longest"}], "program.steps.0.samples: ", "leave it out"),
        (
            [{"ask": "question -> n"}, {"ask": "question, options, n -> answer: int", "orders": "cyclic"}],
            "program.steps.1.orders: ",
            "leave orders out",
        ),
        ([{"ask": "stem -> question"}, {"use": "longest"}], "program.steps.0: ", "choose another name"),
        ([{"when": "context", "do": [{"use": "zero_shot"}]}], "program.steps: ", "the steps may end without an answer"),
    ],
)
def test_what_cannot_be_done_is_refused_with_its_place(steps, place, way_out, document, tmp_path) -> None:
    with pytest.raises(SpecError) as refusal:
        plan_experiment(document(steps), {}, runs_dir=tmp_path / "runs")
    (line,) = str(refusal.value).splitlines()
    assert place in line
    assert way_out in line


@pytest.mark.parametrize(
    ("steps", "why"),
    [
        ([{"use": "zero_shot"}], "zero_shot does not answer cliniqlink"),
        ([{"ask": "question -> answer", "samples": 3, "temperature": 1}], "lets answers vote"),
    ],
)
def test_questions_in_words_take_what_answers_them(steps, why) -> None:
    with pytest.raises(SpecError, match=why):
        spec_of({"steps": steps}, dataset={"name": "cliniqlink"})
    spec_of({"steps": [{"ask": "question -> note"}, {"use": "by_format"}]}, dataset={"name": "cliniqlink"})


def further_models(tmp_path, steps, **strong):
    """A spec whose `strong` model has replies and prices of its own."""
    (tmp_path / "strong.yaml").write_text(yaml.safe_dump({"*": FIELDS.replace("]]\n2", "]]\n4")}))
    return {
        "models": {"strong": {"engine": "scripted", "path": str(tmp_path / "strong.yaml"), **strong}},
        "model": {"engine": "scripted", "path": str(tmp_path / "replies.yaml"), "price": [1, 1]},
        "program": {"steps": steps},
    }


def test_two_models_are_kept_like_one(document, tmp_path) -> None:
    """Each reply says who gave it; tokens, dollars, prints and the identity are those of both."""
    steps = [
        {"ask": "question, options -> answer: int", "as": "draft"},
        {"ask": "question, options, draft -> answer: int", "model": "strong", "temperature": 0.5, "samples": 2},
    ]
    parts = further_models(tmp_path, steps, price=[1000, 1000])
    plan = plan_experiment({**document(steps), **parts}, {}, runs_dir=tmp_path / "runs")
    (stored,), _ = Runner(plan, Silent()).run()
    predictions = stored.folder.read_predictions().values()
    assert {(said.answer, len(said.generations)) for said in predictions} == {(4, 3)}
    assert {tuple(reply.asked for reply in said.generations) for said in predictions} == {(None, "strong", "strong")}
    prints = {said.answered_by for said in predictions}
    assert prints == set(stored.folder.read_json("models.json"))
    assert len(stored.folder.read_json("models.strong.json")) == 1
    further = stored.folder.read_environment()["models"]["strong"]
    tokens = sum(reply.prompt_tokens for said in predictions for reply in said.generations if reply.asked)
    assert (further["prompt_tokens"], further["prices"]["prompt_usd"]) == (tokens, 1e-3)
    every = sum(reply.prompt_tokens + reply.completion_tokens for said in predictions for reply in said.generations)
    strong = further["prompt_tokens"] + further["completion_tokens"]
    assert stored.costs.usd.total == pytest.approx(strong * 1e-3 + (every - strong) * 1e-6)
    spending = Spending(
        prices={"prompt_usd": 1e-6, "completion_usd": 1e-6}, further_prices={"strong": further["prices"]}
    )
    for said in predictions:
        spending.add(said)
    assert spending.cost == pytest.approx(stored.costs.usd.total), "a limit counts the dollars of every model"
    changed = {**document(steps), **further_models(tmp_path, steps, price=[1000, 1000], temperature=0.2)}
    assert digest_of(changed, tmp_path) != plan.cells[0].spec_digest
    again = plan_experiment({**document(steps), **parts}, {}, runs_dir=tmp_path / "runs")
    assert not again.cells[0].pending


def test_a_model_that_is_not_named_is_refused(document, tmp_path) -> None:
    with pytest.raises(SpecError, match=r"program: its steps ask model strong, and models has none"):
        digest_of(document([{"use": "zero_shot", "model": "strong"}]), tmp_path)


def test_a_stored_answer_with_a_likelihood_is_traced(question) -> None:
    steps = [{"use": "zero_shot"}, {"unless": "answer", "do": [{"use": {"kind": "likelihood", "read": "label"}}]}]
    prediction, _, made = ask({"steps": steps}, question, {"*": {**WEIGHED, "text": "I cannot say."}})
    (first, *_) = conversation(made, question, prediction)
    assert first.reply == "I cannot say."


def test_steps_take_the_arguments_of_their_adapter(document, tmp_path: Path) -> None:
    digests = set()
    for args in ({}, {"use_native_function_calling": True}):
        part = {"adapter": "json", "adapter_args": args}
        steps = [{"ask": "question, options -> answer: int"}]
        (cell,) = plan_experiment(document(steps, program=part), {}, runs_dir=tmp_path / "runs").cells
        digests.add(cell.spec_digest)
    assert len(digests) == 2


SIGNED = {"ask": "question, options -> answer: int"}
WAYS = [
    SIGNED,
    {**SIGNED, "answer_format": "guided"},
    {**SIGNED, "by": "chain_of_thought"},
    {**SIGNED, "by": "likelihood"},
    {**SIGNED, "by": "react"},
    {**SIGNED, "words": "zero_shot"},
    {"use": {"kind": "chain_of_thought", "answer_format": "guided"}},
    {"use": {"kind": "likelihood", "read": "label"}},
    {"use": {"kind": "retrieve_then_answer", "retriever": BM25, "cite": True, "answer_format": "guided"}},
    {"use": {"kind": "retrieve_verify", "retriever": BM25}},
    {"use": {"kind": "iterative_retrieval", "retriever": BM25, "rounds": 2}},
    {"use": {"kind": "signature", "signature": SIGNED["ask"]}},
    {"use": "random"},
    {"use": {"steps": [{"all": [SIGNED, {"use": "longest"}], "combine": "vote"}]}},
    {"use": {"steps": [{"repeat": 2, "do": [{"use": "zero_shot"}]}]}},
]
CHANGES = [{}, {"samples": 2}, {"orders": "reversed"}, {"samples": 2, "orders": "reversed"}]
PLACES = {
    "alone": lambda step: [step],
    "behind": lambda step: [{"ask": "question -> hint"}, step],
    "in all": lambda step: [{"all": [step, step], "combine": "mean_probability"}],
    "in all in all": lambda step: [{"all": [[{"all": [step, step], "combine": "vote"}], step], "combine": "vote"}],
    "in repeat": lambda step: [{"repeat": 2, "do": [step]}],
    "in each": lambda step: [
        {"ask": "question -> notes: list[str]"},
        {"each": "notes", "most": 2, "do": [{**step, "as": "draft"}]},
        step,
    ],
    "in else": lambda step: [{"ask": "question -> sure: bool"}, {"unless": "sure", "do": [step], "else": [step]}],
    "used": lambda step: [{"use": {"steps": [step]}}],
}
EVERYTHING = {"hint": "So.", "notes": '["a", "b"]', "sure": "True", "query": "insulin", "reasoning": "Because."}
EVERYTHING |= {"next_thought": "I know.", "next_tool_name": "finish", "next_tool_args": "{}", "answer": "2"}
ANY_REPLY = "\n\n".join(f"[[ ## {name} ## ]]\n{text}" for name, text in EVERYTHING.items())


@pytest.mark.parametrize("place", PLACES)
def test_whatever_answers_stands_anywhere(place, question, tmp_path) -> None:
    """No two replies to one prompt are drawn under one seed, a plan counts enough, and what is read again is the same.

    Each combination is asked in one of the places.
    """
    replies = {"*": {**WEIGHED, "text": f"{ANY_REPLY}\n\n[[ ## completed ## ]]\n{{Answer: 3}} [1]"}}
    for row, way in enumerate(WAYS):
        for column, changes in enumerate(CHANGES):
            judges = str(way).count("retrieve_verify") + str(way).count("iterative")
            if (row + 3 * column) % len(PLACES) != list(PLACES).index(place) or (judges and "orders" in changes):
                continue
            program = {"steps": PLACES[place]({**way, **changes})}
            prediction, requests, made = ask(program, question, replies, tmp_path)
            assert prediction.status is Status.ANSWERED, program
            draws = [digest_request(request) for request in requests if request.config.temperature]
            assert len(set(draws)) == len(draws), program
            if isinstance(made, AskingProgram):
                assert len(requests) <= made.calls_for(question), program
                again = read_again(made, question, prediction)
                assert again is None or (again.answer, again.votes) == (prediction.answer, prediction.votes), program


def test_stacked_branches_are_runs_that_an_ensemble_weighs(document, tmp_path) -> None:
    """As kind `ensemble` does: each branch is a run of its own, which also answers the exams that weights come from."""
    steps = [{"use": "zero_shot"}, [{"ask": "question -> note"}, {"use": "chain_of_thought", "model": "strong"}]]
    stacked = {"all": steps, "combine": "stacked", "train": {"years": [2013]}}
    parts = {**further_models(tmp_path, [stacked]), "dataset": {"name": "headqa_sample", "years": [2016]}}
    replies = FIELDS.replace("argument", "note").replace("]]\n2", "]]\n{Answer: 2}")
    plan = plan_experiment({**document([stacked], replies), **parts}, {}, runs_dir=tmp_path / "runs")
    runs, _ = Runner(plan, Silent()).run()
    assert [cell.label for cell in plan.cells] == ["zero_shot en", "flow en", "ensemble2-stacked en"]
    assert len(runs[-1].folder.read_json("environment.json")["ensemble"]["members"]) == 2
    with pytest.raises(SpecError, match=r"steps\.1: stacked weighs whole programs"):
        digest_of({**document([]), **parts, "program": {"steps": [{"ask": "question -> note"}, stacked]}}, tmp_path)
    with pytest.raises(SpecError, match="go together"):
        digest_of({**document([]), **parts, "program": {"steps": [{**stacked, "combine": "vote"}]}}, tmp_path)


def test_a_plan_counts_the_calls_of_each_model(document, tmp_path) -> None:
    strong = {"use": "zero_shot", "model": "strong", "samples": 2, "temperature": 1}
    steps = [
        {"ask": "question -> sure: bool"},
        {"when": "sure", "do": [{"use": "chain_of_thought"}], "else": [strong]},
        {"use": {"steps": [{"repeat": 3, "do": [{"ask": "question -> note", "model": "strong"}]}, {"use": "longest"}]}},
    ]
    parts = further_models(tmp_path, steps, price=[0, 1000], max_tokens=10)
    plan = plan_experiment({**document(steps), **parts}, {}, runs_dir=tmp_path / "runs")
    (entry,) = plan_document(plan)
    assert (entry["calls"], entry["calls_by_model"]) == (6 * 6, {"scripted": 6 * 2, "strong: scripted": 6 * 5})
    assert plan_document(plan_experiment(document(DEBATE), {}, runs_dir=tmp_path / "runs"))[0].keys() < entry.keys()


@pytest.mark.parametrize(
    ("returned", "answer"),
    [("'2'", 2), ("outcomes[1]", 5), ("dict", None), ("99", None), ("None", None), ("1 / 0", ZeroDivisionError)],
)
def test_what_a_rule_of_one_s_own_returns_is_read_as_a_module_s(returned, answer, question, tmp_path) -> None:
    (tmp_path / "mine.py").write_text(f"def rule(question, outcomes):\n    return {returned}\n")
    branches = [{"use": {"kind": "blind", "option": 3}}, {"use": "longest"}]
    program = {"steps": [{"all": branches, "combine": f"{tmp_path / 'mine.py'}:rule"}]}
    if answer is ZeroDivisionError:
        with pytest.raises(ProgramFaultError, match=r"mine.py:2 in rule: ZeroDivisionError: division by zero"):
            ask(program, question, {"*": FIELDS})
    else:
        assert ask(program, question, {"*": FIELDS})[0].answer == answer


def test_lists_that_are_added_to_are_lists(document, question, tmp_path) -> None:
    """A name is a question's own, a list or a text; a list whose reply did not parse is empty."""
    speak = {"ask": "question -> argument", "add": "notes"}
    for steps, why in (
        ([{**speak, "add": "options"}, {"use": "longest"}], "options is the question's own"),
        ([{"ask": "question -> notes"}, speak, {"use": "longest"}], r"steps\.0: notes is a list that steps add to"),
    ):
        with pytest.raises(SpecError, match=why):
            digest_of(document(steps), tmp_path)
    written = {"ask": "question -> notes: list[str]"}
    for steps in ([written, speak], [written, {"all": [speak, {"ask": "stem -> hint"}]}]):
        steps = [*steps, {"ask": "question, options, notes -> answer: int"}]
        assert ask({"steps": steps}, question, {"*": "nothing"})[0].reason is Reason.UNPARSED


@pytest.mark.parametrize(
    ("step", "why"),
    [
        (
            {"demos": [{"query": "one"}]},
            r"program\.steps\.1: demos: query: the signature has question, options, answer",
        ),
        ({"demos": [{"answer": "two"}]}, r"program\.steps\.1: demos: 'two': Input should be a valid integer"),
        ({"instructions": "./none.txt"}, r"program\.steps\.1: cannot read \./none\.txt"),
        ({"instructions": {"es": "Lea."}}, r"program\.steps\.1: instructions: none in 'en'"),
    ],
)
def test_words_that_do_not_fit_are_refused_with_their_step(step, why, document, tmp_path) -> None:
    with pytest.raises(SpecError, match=why):
        digest_of(document([{"ask": "question -> hint"}, {**SIGNED, **step}]), tmp_path)
