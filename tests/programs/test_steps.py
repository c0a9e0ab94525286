"""Programs that a spec composes of steps: what is asked, what is kept, and what is refused before."""

import json
from pathlib import Path

import pytest
import yaml

import medexam
from medexam.errors import SpecError
from medexam.predictions import Reason, Status
from one_question import BY_QUERY

CASES = Path(__file__).parents[1] / "cases"
FIELDS = {"argument": "It is so.", "helps": "True", "supported": "False", "reasoning": "Because.", "answer": "2"}
DRAWN = {"model": {"temperature": 0.7, "seed": 5}}
SIGNED = {"ask": "question, options -> answer: int"}


def reply_of(**fields):
    """Write all the fields that any step asks for, and an answer in braces."""
    blocks = [f"[[ ## {name} ## ]]\n{text}" for name, text in {**FIELDS, **fields}.items()]
    return "\n\n".join([*blocks, "[[ ## completed ## ]]\n{Answer: 3}"])


WEIGHED = {"text": reply_of(), "logprobs": [[-3.0], [-2.0], [-1.0], [-4.0], [-5.0]]}
"""The same, with the log-probability of each of five texts."""


@pytest.fixture
def do(ask, finder):
    """`do(steps)` -> what came of a question; a plan counts at least as many calls."""

    def call(steps, replies=None, found=None, **more):
        program = {"steps": steps, **({} if found is None else {"retriever": finder(found)})}
        replies = {"*": WEIGHED} if replies is None else replies if callable(replies) else {"*": replies}
        asked = ask(program, replies, **more)
        assert len(asked.dialogues) <= asked.run.metrics.n * planned_calls(program, more)
        return asked

    return call


def planned_calls(program, more):
    spec = {"name": "x", "dataset": {"name": "headqa_sample", "disciplines": "biology", "years": 2013, "limit": 1}}
    parts = {name: part for name, part in more.items() if name in ("models", "model")}
    return medexam.plan({**spec, "program": program, **parts}).cells[0]["calls"]


@pytest.mark.parametrize(
    "program",
    [
        {"use": "zero_shot", "answer_format": "guided", "samples": 3},
        {"use": "few_shot", "orders": "cyclic"},
        {"use": "chain_of_thought", "samples": 2, "orders": "reversed", "answer_format": "guided", "max_tokens": 9},
        {"use": {"kind": "likelihood", "read": "label", "orders": "cyclic"}},
        {"use": {"kind": "retrieve_then_answer", "k": 3, "then": "few_shot", "samples": 2}},
        {"use": {"kind": "likelihood", "read": "label", "context": "retrieved"}},
        {"use": {"kind": "signature", "signature": "question, options, passages -> answer: int"}},
    ],
    ids=str,
)
def test_a_program_that_a_step_uses_asks_and_answers_as_it_does_alone(do, ask, finder, program) -> None:
    used = program["use"]
    kind = dict(used) if isinstance(used, dict) else {"kind": used}
    kind |= {name: value for name, value in program.items() if name != "use"}
    if kind["kind"] == "retrieve_then_answer" or "retrieved" in kind.values() or "passages" in str(kind):
        kind["retriever"] = finder(BY_QUERY)
    alone = ask(kind, {"*": WEIGHED}, **DRAWN)
    behind = do([{"ask": "question -> argument"}, {"use": kind}], **DRAWN)
    assert [(one.turns_with_opening, one.sampling, one.choices, one.continuations) for one in behind.dialogues[1:]] == [
        (one.turns_with_opening, one.sampling, one.choices, one.continuations) for one in alone.dialogues
    ]
    assert (behind.said.answer, behind.said.votes) == (alone.said.answer, alone.said.votes)
    assert behind.said.option_scores == alone.said.option_scores


def test_samples_and_orders_of_a_signature_vote(do) -> None:
    step = {**SIGNED, "samples": 3, "orders": "reversed", "answer_format": "guided"}
    asked = do([step], "2", **DRAWN)
    assert asked.seeds == [5, 6, 7] * 2
    # The second place is option 2 of the exam's order, and option 4 of its reverse.
    assert (asked.said.votes, asked.said.answer) == ((2, 2, 2, 4, 4, 4), 2)


def test_each_guided_output_is_a_call(do) -> None:
    step = {"ask": "question, options -> note, right: bool, answer: int", "by": "chain_of_thought"}
    assert len(do([{**step, "answer_format": "guided"}], "2").dialogues) == 4


def test_equal_steps_draw_anew(do) -> None:
    """A server gives one seed and one prompt one reply: no two samples are one."""
    for step in ({"use": "zero_shot"}, {**SIGNED, "answer_format": "guided"}, {"use": "zero_shot", "samples": 2}):
        seeds = do([{"all": [step, step], "combine": "vote"}], "2", **DRAWN).seeds
        assert seeds == list(range(5, 5 + len(seeds)))
    assert do([{"repeat": 3, "do": [{"use": "zero_shot"}]}], "{Answer: 1}", **DRAWN).seeds == [5, 6, 7]


RAG = [
    {"retrieve": "question", "k": 4},
    {"each": "passages", "name": "passage", "keep": "helps", "do": [{"ask": "question, passage -> helps: bool"}]},
    {"ask": "question, options, passages -> answer: int", "by": "chain_of_thought"},
    {"ask": "question, passages, answer -> supported: bool"},
    {"unless": "supported", "do": [{"use": "zero_shot"}]},
]


def test_passages_are_judged_shown_and_kept(do) -> None:
    judged = iter(["False", "True", "True", "False"])
    asked = do(RAG, lambda turn: reply_of(helps=next(judged, "")), BY_QUERY)
    assert len(asked.dialogues) == len(asked.said.calls) == 4 + 1 + 1 + 1
    assert (asked.said.answer, len(asked.said.passages)) == (3, 4)
    texts = [turn.partition("[[ ## passage ## ]]")[2].partition("Respond")[0].strip() for turn in asked.turns[:4]]
    assert f"[[ ## passages ## ]]\n{texts[1]}\n\n{texts[2]}\n" in asked.turns[4]
    assert texts[0] not in asked.turns[4]
    assert "[[ ## answer ## ]]\n2\n" in asked.turns[5]


def test_a_condition_that_holds_leaves_the_rest_out(do) -> None:
    asked = do(RAG, reply_of(supported="True"), BY_QUERY)
    assert (asked.said.answer, asked.said.rationale, len(asked.dialogues)) == (2, "Because.", 6)


def test_queries_that_a_model_writes_are_looked_up(do) -> None:
    look = [{"retrieve": "query"}, {"ask": "query, passages -> note", "add": "notes"}]
    again = [
        {"ask": "question, options, notes -> queries: list[str], enough: bool"},
        {"each": "queries", "name": "query", "most": 2, "do": look},
    ]
    steps = [{"repeat": 2, "until": "enough", "do": again}, {"use": "chain_of_thought"}]
    reply = reply_of(queries='["insulin", "dopamine", "bone"]', enough="False", note="A note.")
    asked = do(steps, reply, BY_QUERY)
    assert len(asked.dialogues) == 2 * (1 + 2) + 1
    assert "On insulin, 1." in asked.turns[1]
    assert "On dopamine, 1." in asked.turns[2]
    assert "A note.\n\nA note." in asked.turns[3]
    assert len(do(steps, reply.replace("False", "True"), BY_QUERY).dialogues) == 1 + 2 + 1


@pytest.mark.parametrize("rule", ["vote", "mean_probability"])
def test_branches_are_combined(do, rule) -> None:
    branches = [
        {"use": {"kind": "likelihood", "read": "label"}},
        {"use": "longest"},
        [{"ask": "question -> argument"}, {"use": {"kind": "blind", "option": 3}}],
    ]
    said = do([{"all": branches, "combine": rule}]).said
    assert said.votes == (3, 5, 3)
    assert said.answer == 3
    assert sum(said.option_probabilities.values()) == pytest.approx(1)


def test_branches_see_what_was_there_before_them(do) -> None:
    speak = {"ask": "question, options, arguments -> argument", "add": "arguments"}
    asked = do([speak, {"all": [speak, speak]}, speak, {"use": "longest"}])
    assert [turn.count("It is so.") for turn in asked.turns] == [0, 1, 1, 3]


def test_own_code_combines_and_answers_anywhere(do, tmp_path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("""
import dspy

def last(question, outcomes):
    return outcomes[-1].answer

class Judge(dspy.Module):
    def __init__(self):
        super().__init__()
        self.judge = dspy.Predict("stem, argument -> answer: int")

    def forward(self, stem, argument):
        return self.judge(stem=stem, argument=argument.upper())
""")
    branches = {"all": [{"use": f"{path}:Judge"}, {"use": "longest"}], "combine": f"{path}:last"}
    asked = do([{"ask": "question -> argument"}, branches])
    assert (asked.said.answer, asked.said.votes) == (5, (2, 5))
    assert "IT IS SO." in asked.turns[1]


@pytest.mark.parametrize(
    ("returned", "answer"), [("'2'", 2), ("outcomes[1]", 5), ("dict", None), ("99", None), ("None", None), ("1 / 0", 0)]
)
def test_what_a_rule_of_ones_own_returns_is_read_as_a_modules(do, tmp_path, returned, answer) -> None:
    (tmp_path / "mine.py").write_text(f"def rule(question, outcomes):\n    return {returned}\n")
    branches = [{"use": {"kind": "blind", "option": 3}}, {"use": "longest"}]
    said = do([{"all": branches, "combine": f"{tmp_path / 'mine.py'}:rule"}]).said
    if answer == 0:
        assert said.failure.message == "mine.py:2 in rule: ZeroDivisionError: division by zero"
    else:
        assert (said.answer, said.failure) == (answer, None)


def test_a_reply_that_does_not_parse_leaves_its_fields_empty(do) -> None:
    speak, written = {"ask": "question -> argument", "add": "notes"}, {"ask": "question -> notes: list[str]"}
    answer = {"ask": "question, options, notes -> answer: int"}
    first = do([{"ask": "question -> argument"}, {"ask": "question, argument -> answer: int"}], "nothing")
    assert (first.said.status, first.said.reason, len(first.dialogues)) == (Status.UNANSWERED, Reason.UNPARSED, 1)
    assert do([SIGNED, {"unless": "answer", "do": [{"use": "longest"}]}], "nothing").said.answer == 5
    for steps in ([written, speak, answer], [written, {"all": [speak, {"ask": "stem -> hint"}]}, answer]):
        assert do(steps, "nothing").said.reason is Reason.UNPARSED


@pytest.mark.parametrize("by", ["predict", "chain_of_thought"])
def test_by_says_how_a_signature_is_asked(do, by) -> None:
    asked = do([{**SIGNED, "by": by, "instructions": {"en": "Look closely."}}])
    assert asked.said.status is Status.ANSWERED
    assert "Look closely." in str(asked.dialogues[0].messages)


def test_demonstrations_and_temperature_are_a_steps_own(do, tmp_path) -> None:
    (tmp_path / "judge.txt").write_text("Be strict.\n")
    demos = [{"question": "One?", "options": "1. A", "answer": 1}]
    step = {**SIGNED, "demos": demos, "temperature": 0, "instructions": str(tmp_path / "judge.txt")}
    (dialogue,) = do([step], **DRAWN).dialogues
    assert dialogue.sampling["temperature"] == 0
    assert "One?" in str(dialogue.messages)
    assert "Be strict." in str(dialogue.messages)


@pytest.mark.parametrize("case", (CASES / "refused_steps.jsonl").read_text().splitlines())
def test_what_cannot_be_done_is_refused_with_its_place(case, tmp_path, monkeypatch) -> None:
    row = json.loads(case)
    monkeypatch.chdir(tmp_path)
    spec = {"name": "x", "dataset": {"name": row.get("dataset", "headqa_sample")}, "program": {"steps": row["steps"]}}
    with pytest.raises(SpecError) as refused:
        medexam.plan(spec, runs_dir=tmp_path / "runs")
    (line,) = str(refused.value).splitlines()
    assert all(words in line for words in row["says"]), line


@pytest.fixture
def spec_of(tmp_path):
    """`spec_of(steps)` -> a spec over six sample questions, whose model `strong` has replies and prices of its own."""

    def make(steps, price=(1000, 1000), **strong):
        for name, reply in (("weak", reply_of()), ("strong", reply_of(answer="4"))):
            (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump({"*": reply}))
        model = {"engine": "scripted", "path": str(tmp_path / "weak.yaml"), "price": [1, 1]}
        more = {"engine": "scripted", "path": str(tmp_path / "strong.yaml"), "price": list(price), **strong}
        dataset = {"name": "headqa_sample", "limit": 6}
        return {
            "name": "x",
            "dataset": dataset,
            "model": model,
            "models": {"strong": more},
            "program": {"steps": steps},
        }

    return make


def test_two_models_are_kept_like_one(spec_of, tmp_path) -> None:
    """Each reply says who gave it; tokens, dollars, prints and the identity are those of both."""
    steps = [
        {**SIGNED, "as": "draft"},
        {"ask": "question, options, draft -> answer: int", "model": "strong", "temperature": 0.5, "samples": 2},
    ]
    (run,) = medexam.run(spec_of(steps), runs_dir=tmp_path / "runs", progress=False, track=False)
    said = list(run.predictions.values())
    replies = [reply for one in said for reply in one.calls]
    assert {(one.answer, tuple(reply.asked for reply in one.calls)) for one in said} == {
        (4, (None, "strong", "strong"))
    }
    assert {one.answered_by for one in said} == set(json.loads((run.folder / "models.json").read_text()))
    assert len(json.loads((run.folder / "models.strong.json").read_text())) == 1
    strong = sum(reply.prompt_tokens + reply.completion_tokens for reply in replies if reply.asked)
    weak = sum(reply.prompt_tokens + reply.completion_tokens for reply in replies if not reply.asked)
    dollars = strong * 1e-3 + weak * 1e-6
    assert run.stored.costs["usd"]["total"] == pytest.approx(dollars)
    many = {**spec_of(steps), "dataset": {"name": "headqa_sample"}}
    limits = medexam.Limits(cost=dollars)
    (cut,) = medexam.run(many, runs_dir=tmp_path / "cut", progress=False, track=False, limits=limits)
    assert 1 <= len(cut.predictions) < 120, "a limit counts the dollars of every model"
    assert cut.stored.costs["usd"]["total"] <= dollars
    entry = lambda **strong: medexam.plan(spec_of(steps, **strong), runs_dir=tmp_path / "runs").cells[0]  # noqa: E731
    assert (entry()["owed"], entry()["run_id"]) == (0, run.id)
    assert entry(temperature=0.2)["run_id"] != run.id


def test_a_plan_counts_the_calls_of_each_model(spec_of, tmp_path) -> None:
    strong = {"use": "zero_shot", "model": "strong", "samples": 2, "temperature": 1}
    steps = [
        {"ask": "question -> sure: bool"},
        {"when": "sure", "do": [{"use": "chain_of_thought"}], "else": [strong]},
        {"use": {"steps": [{"repeat": 3, "do": [{"ask": "question -> note", "model": "strong"}]}, {"use": "longest"}]}},
    ]
    (entry,) = medexam.plan(spec_of(steps), runs_dir=tmp_path / "runs").cells
    assert (entry["calls"], entry["calls_by_model"]) == (6 * 6, {"scripted": 6 * 2, "strong: scripted": 6 * 5})


def test_the_digest_covers_steps_and_what_their_files_hold(spec_of, tmp_path) -> None:
    rule, judge = tmp_path / "mine.py", tmp_path / "judge.txt"
    step = {**SIGNED, "instructions": str(judge)}
    steps = [{"all": [step, {"use": "zero_shot"}], "combine": f"{rule}:f"}]

    def digest(**program):
        spec = spec_of(steps)
        spec["program"] |= program
        return medexam.plan(spec, runs_dir=tmp_path / "runs").cells[0]["run_id"][-12:]

    rule.write_text("def f(q, o):\n    return 1\n")
    judge.write_text("Be strict.")
    digests = [digest()]
    assert digest(name="other") == digests[0]
    judge.write_text("Be kind.")
    digests.append(digest())
    rule.write_text("def f(q, o):\n    return 2\n")
    digests.append(digest())
    for change in ({"temperature": 0.5}, {"max_tokens": 7}, {"by": "chain_of_thought"}):
        step |= change
        digests.append(digest())
    steps[0]["all"][1]["orders"] = "cyclic"
    digests.append(digest())
    digests += [digest(adapter="json"), digest(adapter="xml")]
    assert len(set(digests)) == len(digests)


WAYS = [
    SIGNED,
    {**SIGNED, "answer_format": "guided"},
    {**SIGNED, "by": "chain_of_thought"},
    {**SIGNED, "by": "react"},
    {**SIGNED, "words": "zero_shot"},
    {"use": {"kind": "chain_of_thought", "answer_format": "guided"}},
    {"use": {"kind": "likelihood", "read": "label"}},
    {"use": {"kind": "retrieve_then_answer", "cite": True, "answer_format": "guided"}},
    {"use": {"kind": "retrieve_verify"}},
    {"use": {"kind": "iterative_retrieval", "rounds": 2}},
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
EVERYTHING = {"hint": "So.", "notes": '["a", "b"]', "sure": "True", "query": "insulin"}
EVERYTHING |= {"next_thought": "I know.", "next_tool_name": "finish", "next_tool_args": "{}"}


@pytest.mark.parametrize("place", PLACES)
def test_whatever_answers_stands_anywhere_and_no_two_replies_are_drawn_under_one_seed(do, finder, place) -> None:
    """Each combination is asked in one of the places."""
    reply = {**WEIGHED, "text": f"{reply_of(**EVERYTHING)} [1]"}
    for row, way in enumerate(WAYS):
        for column, changes in enumerate(CHANGES):
            judges = str(way).count("retrieve_verify") + str(way).count("iterative")
            if (row + 3 * column) % len(PLACES) != list(PLACES).index(place) or (judges and "orders" in changes):
                continue
            looks = {"use": {**way["use"], "retriever": finder(BY_QUERY)}} if "retriev" in str(way) else {}
            steps = PLACES[place]({**way, **looks, **changes})
            asked = do(steps, reply, **DRAWN)
            assert asked.said.status is Status.ANSWERED, steps
            draws = [(one.key, one.sampling["seed"]) for one in asked.dialogues if one.sampling.get("temperature")]
            assert len(set(draws)) == len(draws), steps
