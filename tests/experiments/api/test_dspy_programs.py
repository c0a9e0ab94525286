"""Programs as users of DSPy write them: plain DSPy, `medexam.Evaluate` and `medexam.run` ask and answer alike."""

import json
import re
from collections import Counter
from typing import Literal
from zlib import crc32

import dspy
import pydantic
import pytest
from wire_server import Wire, serving

import medexam

QUESTIONS = 2
FIELD = re.compile(r"^\d+\. `(\w+)` \((.*?)\):", re.MULTILINE)


def write_value(name: str, kind: str, digest: int, messages: str) -> str:
    """Write an output's value of its type, by the digest of what was asked."""
    calls = "Observation" in messages or "observation_0" in messages
    note = {"fact": f"fact {digest % 5}", "weight": digest % 9}
    values = {
        "next_tool_name": "finish" if calls else "look_up",
        "next_tool_args": "{}" if calls else '{"words": "scurvy"}',
        "answer": str(digest % 4 + 1),
        "sure": ("low", "high")[digest % 2],
        "unparsable": "no number",
        "notes": json.dumps([note, note]),
        "advice": json.dumps({"self": "be exact", "predict": "be exact"}),
    }
    by_kind = {"bool": str(bool(digest % 2)), "float": str(digest % 100 / 100), "list[str]": json.dumps(["x", "y"])}
    return values.get(name) or by_kind.get(kind) or f"word {digest % 7}"


def reply(body: dict) -> str:
    """Reply in the form that the last message asks for."""
    texts = [message["content"] for message in body["messages"]]
    digest = crc32(json.dumps([texts, body.get("temperature") or None, body.get("seed")]).encode())
    outputs = texts[0].partition("Your output fields are:")[2].partition("All interactions")[0]
    values = {name: write_value(name, kind, digest, "".join(texts)) for name, kind in FIELD.findall(outputs)}
    if not values:
        return f"The answer is {digest % 4 + 1}."
    if "JSON object" in texts[-1]:
        return json.dumps(values)
    if re.search(r"`<\w+>`", texts[-1]):
        return "\n".join(f"<{name}>{value}</{name}>" for name, value in values.items())
    return "\n\n".join(f"[[ ## {name} ## ]]\n{value}" for name, value in values.items())


class Replying(Wire):
    """Replies by `reply`, and keeps what it is asked in `requests`."""

    def reply(self, path: str, body: dict) -> tuple[int, dict]:
        message = {"role": "assistant", "content": reply(body)}
        choices = [{"index": n, "finish_reason": "stop", "message": message} for n in range(body.get("n") or 1)]
        usage = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}
        head = {"id": "1", "object": "chat.completion", "created": 1, "model": "m"}
        return 200, {**head, "choices": choices, "usage": usage}


@pytest.fixture(scope="module")
def server():
    with serving(Replying()) as wire:
        yield wire


@pytest.fixture
def lm(server):
    return dspy.LM("openai/m", api_base=server.address, api_key="x", cache=False, temperature=0.0, max_tokens=90)


def look_up(words: str) -> str:
    """Look words up."""
    return f"found {words}"


class Note(pydantic.BaseModel):
    fact: str
    weight: int


class Typed(dspy.Signature):
    """Note facts, then answer."""

    question: str = dspy.InputField()
    notes: list[Note] = dspy.OutputField()
    sure: Literal["low", "high"] = dspy.OutputField()
    likely: bool = dspy.OutputField()
    keywords: list[str] = dspy.OutputField()
    share: float = dspy.OutputField()
    answer: Literal[1, 2, 3, 4] = dspy.OutputField()


class Loud(dspy.ChatAdapter):
    """An adapter of one's own."""

    def format_user_message_content(self, *args, **options):
        return super().format_user_message_content(*args, **options) + "\nBe exact."


SHORT = "question -> answer: int"


def ask(question):
    return dspy.ChainOfThought(SHORT)(question=question)


def refined(question):
    return dspy.Refine(dspy.ChainOfThought(SHORT), 3, lambda _, made: float(made.answer == 2), 1.0)(question=question)


def agent(question):
    return dspy.ReAct(SHORT, tools=[look_up], max_iters=3)(question=question)


def warm(question):
    answer = dspy.Predict(SHORT, temperature=0.7)
    votes = [answer(question=question, config={"rollout_id": n, "temperature": 0.5 + n / 10}).answer for n in range(3)]
    with dspy.context(lm=dspy.settings.lm.copy(temperature=0.9, max_tokens=33)):
        votes.append(answer(question=question).answer)
    return dspy.Prediction(answer=Counter(votes).most_common(1)[0][0], votes=votes)


def voted(question):
    return dspy.majority(dspy.Predict("question -> answer", n=3, temperature=0.7)(question=question), normalize=str)


def tracked(question):
    with dspy.track_usage() as usage:
        made = ask(question)
    return dspy.Prediction(answer=made.answer, used=len(usage.get_total_tokens()))


def raw(question):
    draft = dspy.settings.lm(f"Draft: {question}")[0]
    return dspy.Predict("question, draft -> answer: int")(question=question, draft=draft)


def taught(question):
    module = dspy.ChainOfThought(dspy.Signature(SHORT, f"Answer in {len(question)} words."))
    module.predict.demos = [dspy.Example(question="One?", reasoning="So.", answer=1), dspy.Example(question="Two?")]
    return module(question=question)


def side_by_side(question):
    views = [dspy.Example(question=question, view=view).with_inputs("question", "view") for view in "ab"]
    answer = dspy.Predict("question, view -> answer: int")
    made = dspy.Parallel(num_threads=2, disable_progress_bar=True)([(answer, view) for view in views])
    return dspy.Prediction(answer=made[1].answer, side=[one.answer for one in made])


class Asked(dspy.Signature):
    question: str = dspy.InputField()
    history: dspy.History = dspy.InputField()
    answer: int = dspy.OutputField()


def conversation(question):
    turns = []
    for _ in range(2):
        made = dspy.Predict(Asked)(question=question, history=dspy.History(messages=list(turns)))
        turns.append({"question": question, "answer": made.answer})
    return made


def under(adapter, signature=Typed):
    def answer(question):
        with dspy.context(adapter=adapter() if adapter is not dspy.TwoStepAdapter else adapter(dspy.settings.lm)):
            return dspy.Predict(signature)(question=question)

    return answer


CALLS = (
    *(refined, agent, warm, voted, tracked, raw, taught, side_by_side, conversation),
    *map(under, (dspy.ChatAdapter, dspy.XMLAdapter, Loud)),
    *(under(adapter, SHORT) for adapter in (dspy.JSONAdapter, dspy.TwoStepAdapter)),
)


class Every(dspy.Module):
    """Calls them one after the other, and returns what each returned."""

    def forward(self, question):
        made = {f"{n} {call.__name__}": dict(call(question).items()) for n, call in enumerate(CALLS)}
        return dspy.Prediction(answer=next(iter(made.values()))["answer"], made=made)


class Awaiting(Every):
    """Does the same in another thread, and is awaited."""

    async def aforward(self, question):
        return await dspy.asyncify(super().forward)(question=question)


def as_json(value):
    return json.loads(json.dumps(value, default=lambda part: part.model_dump()))


@pytest.mark.filterwarnings("ignore:The 'prefix' argument")
@pytest.mark.parametrize("make", [Every, pytest.param(Awaiting, marks=pytest.mark.nightly)])
def test_programs_ask_and_answer_as_in_plain_dspy(make, server, lm, tmp_path) -> None:
    def take() -> list[str]:
        sent = sorted(json.dumps(body, sort_keys=True) for _, body in server.requests)
        sent = [body for body in sent if "Name a bone." not in body]  # a look at which model answers
        server.requests.clear()
        return sent

    settings = {"limit": QUESTIONS, "runs_dir": tmp_path, "track": False, "progress": False}
    (run,) = medexam.run("headqa_sample", program=make(), model=lm, **settings)
    by_run = take()
    assert [each.failure for each in run.predictions.values()] == [None] * QUESTIONS
    questions = [one for one in medexam.load_questions("headqa_sample") if one.key in run.predictions]
    texts = {one.key: one.printed for one in questions}
    with dspy.context(lm=lm):
        plain = {key: as_json(Every()(question=text).made) for key, text in texts.items()}
        sent = take()
        devset = [dspy.Example(question=text, key=key).with_inputs("question") for key, text in texts.items()]
        evaluate = medexam.Evaluate(
            devset=devset, metric=lambda *_: 1.0, runs_dir=tmp_path / "evaluations", track=False
        )
        evaluated = {example.key: as_json(output.made) for example, output, _ in evaluate(make()).results}
    assert evaluated == plain
    assert {key: prediction.outputs["made"] for key, prediction in run.predictions.items()} == plain
    assert by_run == sent
    assert take() == sent
